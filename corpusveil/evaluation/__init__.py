"""What a release gives away and is still good for: one room a question, and the report that asks them all."""
