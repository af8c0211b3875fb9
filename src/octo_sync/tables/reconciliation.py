"""What comparisons with other systems found: a copy of what the journal knows, read by the mart `recon_open`."""

from octo_sync.tables.base import Column, Merge, Table

RECON_RUNS = Table(
    schema="ops",
    name="recon_runs",
    description="Comparisons of this copy with a ledger, CRM or other system, and what each came to.",
    grain="One run of one reconciliation.",
    key=("recon_name", "run_id"),
    merge=Merge.LOG,
    columns=(
        Column("recon_name", "text", "The reconciliation, as named in the pipeline."),
        Column("run_id", "text", "The run of the command; it may have made several comparisons."),
        Column("verdict", "text", "ok, over (a limit of fail_on was passed) or failed (it could not compare)."),
        Column("started_at_utc", "timestamptz", "When it began."),
        Column("ended_at_utc", "timestamptz", "When its results were stored; the last_seen_at_utc of what it found."),
        Column("window_start", "date", "The first day that it looked at."),
        Column("window_end", "date", "The last day that it looked at."),
        Column("here_origin", "text", "What our side was read from."),
        Column("there_origin", "text", "What the other side was read from."),
        Column("differences", "bigint", "Differences that it found, accepted ones included."),
        Column("new_differences", "bigint", "Of these: not open before."),
        Column("resolved_differences", "bigint", "Open before, looked for and not found."),
        Column("open_differences", "bigint", "Open afterwards, also those whose day it did not look at."),
        Column("matched", "bigint", "Items equal on both sides."),
        Column("matched_within_tolerance", "bigint", "Items equal but for a tolerated amount."),
        Column("mismatched", "bigint", "Items of which a field differs."),
        Column("missing_here", "bigint", "Items that only the other side has."),
        Column("missing_there", "bigint", "Items that only our side has."),
        Column("duplicate_here", "bigint", "Groups of rows here that share a key."),
        Column("duplicate_there", "bigint", "Groups of rows there that share a key."),
        Column("ambiguous", "bigint", "Groups of rows that could be paired in more than one way."),
        Column("too_fresh", "bigint", "Items inside the grace time."),
        Column("out_of_window", "bigint", "Items of which a side lies outside the window."),
        Column("accepted", "bigint", "Accepted items."),
        Column("control_totals", "text", "A JSON array: rows and money of each side and currency, as they were read."),
        Column(
            "revision", "bigint", "The number of the journal's last change that this copy shows; the same in all rows."
        ),
    ),
)

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
        Column(
            "bucket", "text", "mismatched, missing_here, missing_there, duplicate_here and the like; as it was found."
        ),
        Column("field", "text", "The field that differs; '' where the whole row does."),
        Column("match_rule", "text", "The pass that made the pair, e.g. booking_uuid; null without a pair."),
        Column("connection_id", "text", "The connection of our side; null where it is missing here."),
        Column("booking_uuid", "text", "OCTO booking uuid of our side; null where it is missing here."),
        Column("here_value", "text", "The field's value here; null where the booking was erased."),
        Column("there_value", "text", "The field's value there; null where the booking was erased."),
        Column(
            "delta_amount", "numeric(18,4)", "There minus here, for amounts in one currency; null beyond 14 digits."
        ),
        Column("currency", "text", "ISO 4217 code of the difference."),
        Column("reason", "text", "The likely reason, in a sentence."),
        Column("code", "text", "The rule that gave the reason; '' where none fits."),
        Column(
            "day",
            "date",
            "Its day in the comparison's window; null: in every window.",
        ),
        Column("first_seen_at_utc", "timestamptz", "When the difference was first found."),
        Column("last_seen_at_utc", "timestamptz", "When it was last found."),
        Column("resolved_at_utc", "timestamptz", "When a run no longer found it; null while open."),
        Column("accepted_note", "text", "Why the difference was accepted; null: not accepted."),
        Column("accepted_by", "text", "Who accepted it."),
        Column("accepted_until", "date", "Last day of the acceptance; null with a note: no end."),
    ),
)
