"""All readers that are fuzzed, by name."""

from __future__ import annotations

from fuzz import documents, judged, spaces, states
from fuzz.invariant import Reader

READERS: dict[str, Reader] = {
    reader.name: reader for module in (documents, judged, spaces, states) for reader in module.readers()
}
