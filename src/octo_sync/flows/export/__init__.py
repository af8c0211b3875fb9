"""Rows into files."""
