"""What octo-sync shows to the network: the receiver of webhooks."""
