"""Whole flows, the same on every engine."""
