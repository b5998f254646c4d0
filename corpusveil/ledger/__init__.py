"""The books: what privacy units have spent over all releases, and the caps that refuse more.

A *unit* is a value of a column that the user names (an author, a customer, a document's id), or a document's text. A
unit has spent the sum over all different noise that was drawn for its documents: equal noise (a retry, a copy under
``same-noise``) is spent once, whatever its file, column, engine or run.
"""
