"""The benchmarks of corpusveil: ``python -m benchmarks [names...]`` prints the tables of docs/figures.md."""
