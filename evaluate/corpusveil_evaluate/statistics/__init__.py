"""Statistics of private texts and their originals, one per file, found by ``statistic``."""
