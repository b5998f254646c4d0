"""Keys, keyed draws and samplers over integer weights."""
