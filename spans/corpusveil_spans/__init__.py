"""Finders of spans for corpusveil: rules, names without a model, and an adaptor of Presidio."""
