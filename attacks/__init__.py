"""Attacks on the promises: what ``make attacks`` runs, and what SECURITY.md says was tried."""
