"""Readers of word vectors, one file a format: ``read(url) -> Table``.

A reader checks what only it can see (a ragged row, a broken archive, a column that is missing) and names the file and
the row; ``Vectors`` checks what holds for all (finite, no duplicates, no blanks). To add a format: a file here with
``read``, and its suffix in ``READERS`` of ``spaces/vectors.py``.
"""
