"""Webhook subscriptions, deliveries, and noticing when they have gone quiet."""
