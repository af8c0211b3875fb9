"""The shapes of money that several nouns share (capability `pricing`)."""

__all__ = ["PRICE", "PRICE_WITH_TAXES", "TAX"]

TAX = "STRUCT(name VARCHAR, original BIGINT, retail BIGINT, net BIGINT)"
_PRICE = (
    'STRUCT("unitId" VARCHAR, currency VARCHAR, "currencyPrecision" INTEGER, original BIGINT, retail BIGINT, net BIGINT'
)
PRICE = f"{_PRICE})"
PRICE_WITH_TAXES = f'{_PRICE}, "includedTaxes" {TAX}[])'
