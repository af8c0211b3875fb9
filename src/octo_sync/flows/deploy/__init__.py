"""Files that run octo-sync on other machinery."""
