"""The verbs: mark, work, fetch, land, settle, pull, publish, verify. Ports are arguments; nothing here is global."""
