"""Words, sentences, token classes and their policies: spans in, text out, nothing lost between tokens."""
