"""Coverage-guided fuzzing of everything that reads a file: ``python -m fuzz READER``, or ``make fuzz`` for all."""
