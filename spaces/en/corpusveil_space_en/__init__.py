"""The space ``en`` of corpusveil: ``space.zip`` and its SHA-256, made by ``make space-en`` of the repository."""
