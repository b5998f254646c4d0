"""Readers of a release, each knowing more than the one before, and what share of words they guess."""

from corpusveil_evaluate.readers.ngrams.denoised_texts import denoise as denoise
from corpusveil_evaluate.readers.ngrams.modelling import load_model as load_model
