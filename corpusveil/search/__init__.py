"""The vectors nearest to points, exactly: products of floats or bytes nominate, float64 decides. Arrays only."""
