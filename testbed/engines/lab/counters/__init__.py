"""What is counted and captured in a lab."""
