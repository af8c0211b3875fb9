"""Pulling and keeping: what is due is marked, fetched, landed, settled."""
