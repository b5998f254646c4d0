"""Statistics of private texts beside their originals; each is one file, found by ``registry``."""
