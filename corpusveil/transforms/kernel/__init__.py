"""The batch kernel and its parts: picking, lengths, surrogates."""
