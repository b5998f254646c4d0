"""The batch kernel and its parts: lengths, surrogates."""
