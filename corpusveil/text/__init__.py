"""Words, sentences, token classes and what becomes of each: spans in, text out, nothing lost between tokens."""
