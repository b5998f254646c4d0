"""What training does unless told otherwise, where options show it: apart, since help loads no array library."""

from __future__ import annotations

SPOOL_BYTES = 32 << 30
"""The most disk that tokens take while vectors are trained."""
