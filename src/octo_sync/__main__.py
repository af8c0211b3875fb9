"""`python -m octo_sync` is `octo-sync`."""

from octo_sync.cli import program

program()
