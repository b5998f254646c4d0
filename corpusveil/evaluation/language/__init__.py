"""What the text is like: perplexity by language models."""
