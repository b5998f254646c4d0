"""The utility of private texts: classifiers and their scores."""
