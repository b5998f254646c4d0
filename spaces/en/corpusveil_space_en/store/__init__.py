"""The store ``en`` of corpusveil: ``space.zip`` and its SHA-256, made by ``python -m spaces.en.make_store``."""
