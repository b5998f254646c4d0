"""The five published studies as commands: grids of cells, each an artifact, compared with the papers.

A study is a module with ``STUDY`` (``study.py``) and a file of its grid, ``NAME.toml``. ``run_study.py`` prepares
texts and spaces, maps its cells over an engine, and writes tables and a page.
"""
