"""The wiring: a pipeline and the environment become ports; each long-running program is put together here."""
