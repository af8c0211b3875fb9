"""Compare the copy with a ledger: both sides, what is kept of a comparison, and its reports."""
