"""The batch kernel, texts in and texts out, and its parts: preparation, spans."""
