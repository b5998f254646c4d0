"""The settings of published studies, from ``profiles.toml``.

A profile sets only what its study, or the study's public package, is known to have done. All other settings keep this
package's default, and the profile names them as ours.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpusveil.text.policy import ROLE_NAMES, TextPolicy

_POLICIES = (*ROLE_NAMES[1:], "layout", "case")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The text policy of one study, of which ``source`` says whence it is known, and what the study leaves ``open``."""

    name: str
    study: str
    text: Mapping[str, Any]
    source: str
    open: tuple[str, ...]

    def policy(self) -> TextPolicy:
        return TextPolicy(**self.text)

    def lines(self) -> Iterator[str]:
        """Yield notes: the source of the settings, and which of them the study does not have."""
        yield f"Texts are treated after {self.study}: {self.source}; its epsilon is per word."
        yield from self.open
        ours = [name for name in _POLICIES if name not in self.text]
        yield f"Not stated in the study; our choice: {', '.join(ours) or 'no text policy'}."


_PROFILES = tomllib.loads(Path(__file__).with_name("profiles.toml").read_text(encoding="utf-8"))
PROFILES: Mapping[str, Profile] = {
    name: Profile(**{**own, "name": name, "open": tuple(own["open"])}) for name, own in _PROFILES["profiles"].items()
}
