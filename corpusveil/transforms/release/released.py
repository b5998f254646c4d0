"""The spending of a finished release, by its own manifest: its own, or nothing if it was denoised from another."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from corpusveil.display import Card, Shown
from corpusveil.errors import MismatchError
from corpusveil.storage import files
from corpusveil.storage.inputs import InputShard
from corpusveil.transforms.release.manifest import MANIFEST, read_manifest


@dataclass(frozen=True, slots=True, repr=False)
class Spends(Shown):
    """The spending of the release at ``url``.

    ``release`` is its digest, ``name`` what a ledger calls the release that spent; ``source`` is the digest of the
    release that it was denoised from, and then it spends nothing itself; None where it spends.
    """

    url: str
    release: str
    name: str
    metric: str
    source: str | None

    def card(self) -> Card:
        """Return the spending, and the release that spent it, in words."""
        if self.source is None:
            spent = f"what a ledger shows for release {self.name}, in metric {self.metric}"
            return Card(f"Release {self.url}", [("spends", spent)])
        return Card(
            f"Denoised release {self.url}",
            [
                ("spends", "nothing: no ledger has an entry for it"),
                ("made of", f"release {self.source}, and public data"),
                ("promises", f"those of that release; a ledger shows its spending as {self.name}"),
            ],
        )


def spends_of(url: str) -> Spends | None:
    """Return the spending of a finished release; None if there is none. Raises UserError for a damaged manifest."""
    if not files.exists(files.join(url, MANIFEST)):
        return None
    manifest = read_manifest(url)
    source = manifest["denoised"]["release"] if "denoised" in manifest else None
    return Spends(url, manifest["release"], manifest["spends"]["name"], manifest["spends"]["metric"], source)


def refuse_denoised(shards: Sequence[InputShard]) -> None:
    """Raise UserError if an input is a denoised release, which no ledger counts."""
    for folder in dict.fromkeys(posixpath.dirname(posixpath.dirname(shard.url)) for shard in shards):
        spends = spends_of(folder) if folder else None
        if spends is not None and spends.source is not None:
            raise MismatchError(
                f"{folder}: this is a denoised release, made from release {spends.source[:16]}…. It spends nothing, so "
                "a ledger has no entry for it; privatize the original, or leave the ledger out."
            )
