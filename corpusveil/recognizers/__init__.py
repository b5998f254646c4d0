"""What finds spans in texts: built-in rules, capitalized runs, terms of a file, and recipes for other recognizers."""
