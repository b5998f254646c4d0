"""The space ``en`` of corpusveil: ``space.zip`` and its SHA-256, made by ``scripts/demo_data.py`` of the repository."""
