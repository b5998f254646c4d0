"""Releases on tables, Spark DataFrames and Beam collections: wrappers of ``kernel`` and ``release``."""
