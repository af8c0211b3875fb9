"""How the copy is: for people, for machines, and as notices."""
