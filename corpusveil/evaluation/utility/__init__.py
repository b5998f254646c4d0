"""What private texts are still good for: classifiers and what they learn."""
