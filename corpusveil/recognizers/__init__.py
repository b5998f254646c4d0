"""What finds spans in texts: built-in rules, capitalised runs, terms of a file, and recipes for other recognizers."""
