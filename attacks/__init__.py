"""Attacks on the guarantees: run by ``make attacks``, with counts in SECURITY.md."""
