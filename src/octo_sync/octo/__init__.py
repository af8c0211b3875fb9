"""The wire: the OCTO client, its endpoints, and what real services do differently."""
