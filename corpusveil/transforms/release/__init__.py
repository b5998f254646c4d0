"""What a release is, its run over a corpus, its manifest, pages and plan."""
