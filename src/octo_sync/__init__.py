"""octo-sync: a SQL copy of an OCTO booking service that can prove it is complete."""

__version__ = "0.1.0"
