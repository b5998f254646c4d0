"""Readers of a release, each knowing more than the one before, and what share of words they guess."""
