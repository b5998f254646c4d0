"""What is run: whole flows, the same on every engine."""
