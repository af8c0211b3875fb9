"""The shapes of money that several nouns share (capability `pricing`)."""

__all__ = ["PRICE", "TAX"]

TAX = "STRUCT(name VARCHAR, original BIGINT, retail BIGINT, net BIGINT)"
PRICE = (
    f'STRUCT("unitId" VARCHAR, currency VARCHAR, "currencyPrecision" INTEGER, original BIGINT, retail BIGINT, '
    f'net BIGINT, "includedTaxes" {TAX}[])'
)
