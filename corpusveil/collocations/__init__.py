"""N-gram counts, association measures, collocation tokenisers and the collocation word2vec (next release)."""
