"""The demo's proof and its ledger."""
