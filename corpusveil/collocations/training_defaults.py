"""Defaults of training that options show, in a module of their own, since help loads no array library."""

from __future__ import annotations

SPOOL_BYTES = 32 << 30
"""The most disk space for tokens during training."""
