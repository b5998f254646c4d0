"""Whole flows on Spark."""
