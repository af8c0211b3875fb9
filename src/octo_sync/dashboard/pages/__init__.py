"""The pages of the dashboard: the folder is the registry. A module has one `PAGE`; one that begins with `_` is a helper."""
