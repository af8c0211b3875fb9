"""Find, export and erase what is held of a person."""
