"""What a release discloses, and how useful it is: one package for each question, and a report of all figures."""
