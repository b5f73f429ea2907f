"""What was observed, and whether it can be believed."""
