"""A release beside its original, as one page, JSON and CSV."""
