"""The comparison of a release with its original, as one page, JSON and CSV."""
