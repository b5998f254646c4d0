"""What corpusveil is measured by: ``python -m benchmarks [names...]`` prints the tables that the README shows."""
