"""Whether the guarantee of a mechanism, or the claim of its paper, is true."""
