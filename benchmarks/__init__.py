"""What corpusveil is measured by: ``python -m benchmarks [names...]`` prints the tables of docs/figures.md."""
