"""An OCTO booking service of our own: a stranger to the connector, for first steps, tests and benchmarks.

It imports nothing else of octo_sync. What it does and what it chose is in README.md beside this file.
"""
