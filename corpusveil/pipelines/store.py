"""From public texts to a store."""

from __future__ import annotations

import time

from corpusveil.display import several
from corpusveil.passages.build import build_store
from corpusveil.passages.store import Store
from corpusveil.pipelines.collocations import said_when_made
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import load_space
from corpusveil.spaces.vocabulary import read_words


def build(settings: Settings, watch: Watch) -> Store:
    """Build the store of the public texts in these settings."""
    chosen, began = needed(settings.store, "store"), time.monotonic()
    least, _, most = chosen.words.partition("-")
    watch.warn(f"{' '.join(chosen.input)}: these texts are released word for word")
    with said_when_made(chosen.path, watch):
        made = build_store(
            chosen.input, chosen.path, load_space(needed(settings.space, "space").path), chosen.licence or "",
            (int(least), int(most)), chosen.size, chosen.salt, settings.engine.make(), chosen.attribution,
            text=chosen.text, excluded=None if chosen.exclude is None else read_words(chosen.exclude),
            unlike=chosen.unlike, encoder=chosen.encoder, watch=watch.stage,
        )  # fmt: skip
    info, seconds = made.info, time.monotonic() - began
    pieces = f"{several(len(made), 'piece')} of {info['fit']:,} that are fit"
    refused = ", ".join(f"{count:,} {fault}" for fault, count in info["refused"].items())
    watch.say(f"{chosen.path}: {pieces}, from {several(info['documents'], 'document')}; {seconds:.1f} s")
    watch.say(f"refused for: {refused or 'nothing'}\nsha256 {made.digest}")
    for name in (name for name in ("like", "unlike") if name in info["figures"]):
        near, back = info["figures"][name]["similarity"][0], info["figures"][name]["back"]["10"]
        measured = "pieces of these texts that the store does not have" if name == "like" else "pieces of unlike texts"
        watch.say(
            f"{measured}: the nearest piece has similarity {near:.3f}; at epsilon 10, a replacement "
            f"has {back:.1%} of the content words of its original"
        )
    return made
