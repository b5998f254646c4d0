"""Fluency of texts: perplexity by language models."""
