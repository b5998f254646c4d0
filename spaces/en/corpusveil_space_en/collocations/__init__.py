"""The space ``en-collocations``: words and collocations, trained on the text of ``en``."""
