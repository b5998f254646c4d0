"""A passage for a passage: pieces of text, a public store of them, and the law by which one replaces another."""
