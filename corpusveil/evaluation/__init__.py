"""Privacy statistics, attacks, utility tasks and the report (next release)."""
