"""Recognizers: what finds names, numbers and other spans in texts."""
