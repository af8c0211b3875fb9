"""What comparisons with other systems found; written by `reconcile`, read by the mart `recon_open`."""

from octo_sync.tables.base import Column, Merge, Table

RECON_RESULTS = Table(
    schema="ops",
    name="recon_results",
    description="Differences between this copy and a ledger, CRM or other system; one stays the same row from day to day.",
    grain="One difference: key, bucket and field of one reconciliation.",
    key=("recon_name", "recon_key", "bucket", "field"),
    merge=Merge.LOG,
    columns=(
        Column("recon_name", "text", "The reconciliation, as named in the pipeline."),
        Column("recon_key", "text", "What the pair was matched by, or the one side's own key."),
        Column("bucket", "text", "mismatched, missing_here, missing_there, duplicate_here, accepted and the like."),
        Column("field", "text", "The field that differs; '' where the whole row does."),
        Column("match_rule", "text", "The pass that made the pair, e.g. booking_uuid; null without a pair."),
        Column("connection_id", "text", "The connection of our side; null where it is missing here."),
        Column("booking_uuid", "text", "OCTO booking uuid of our side; null where it is missing here."),
        Column("here_value", "text", "The field's value here."),
        Column("there_value", "text", "The field's value there."),
        Column("delta_amount", "numeric(18,4)", "There minus here, for amounts in one currency."),
        Column("currency", "text", "ISO 4217 code of the difference."),
        Column("reason", "text", "The likely reason, in a sentence."),
        Column("first_seen_at_utc", "timestamptz", "When the difference was first found."),
        Column("last_seen_at_utc", "timestamptz", "When it was last found."),
        Column("resolved_at_utc", "timestamptz", "When it was no longer found; null while it is open."),
    ),
)
