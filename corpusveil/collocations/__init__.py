"""N-gram counts, association measures, collocation tokenizers and word2vec of collocations."""
