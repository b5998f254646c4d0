"""Search with obfuscated queries: engines, the protocol, its measures, and its collections (pyPANTERA's study)."""
