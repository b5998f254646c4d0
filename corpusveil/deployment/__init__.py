"""Texts and files for other machines: packages for clusters, templates, definitions that start a schedule."""
