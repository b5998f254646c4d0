"""Search with obfuscated queries: engines, the protocol, its measures, and what is searched (pyPANTERA's study)."""
