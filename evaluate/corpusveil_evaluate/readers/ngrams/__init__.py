"""The reader with public trigrams: a language model, the law of a release, and a search over sentences."""
