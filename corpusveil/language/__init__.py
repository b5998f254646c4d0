"""The public n-gram language model; denoising; what a reader recovers from context."""
