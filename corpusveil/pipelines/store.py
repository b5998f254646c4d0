"""From public texts to a store."""

from __future__ import annotations

import time

from corpusveil.display import several
from corpusveil.errors import UnsetError
from corpusveil.passages.build import build_store
from corpusveil.passages.store import Store
from corpusveil.pipelines.collocations import said_when_made
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import load_space
from corpusveil.spaces.vocabulary import read_words

WORD_FOR_WORD = "these texts are released word for word"


def build(settings: Settings, watch: Watch) -> Store:
    """Build the store of the public texts in these settings."""
    chosen, began = needed(settings.store, "store"), time.monotonic()
    if chosen.licence is None:
        raise UnsetError("store.licence: this setting is missing; say under which licence the texts are public.")
    least, _, most = chosen.words.partition("-")
    watch.warn(f"{' '.join(chosen.input)}: {WORD_FOR_WORD}")
    with said_when_made(chosen.path, watch):
        made = build_store(
            chosen.input, chosen.path, load_space(needed(settings.space, "space").path), chosen.licence,
            (int(least), int(most)), chosen.size, chosen.salt, settings.engine.make(), chosen.attribution,
            text=chosen.text, excluded=None if chosen.exclude is None else read_words(chosen.exclude),
            unlike=chosen.unlike, watch=watch.stage,
        )  # fmt: skip
    info = made.info
    refused = ", ".join(f"{count:,} {fault}" for fault, count in info["refused"].items())
    watch.say(
        f"{chosen.path}: {several(len(made), 'piece')} of {info['fit']:,} that are fit, from "
        f"{several(info['documents'], 'document')}; {time.monotonic() - began:.1f} s\n"
        f"refused for: {refused or 'nothing'}"
    )
    for name in ("like", "unlike"):
        if (figures := info["figures"].get(name)) is not None:
            watch.say(
                f"{name} its texts: similarity {figures['similarity'][0]:.3f} to the nearest piece, "
                f"{figures['overall']:.3f} to any; at 10 nats {figures['back']['10']:.1%} of content words come back "
                f"({figures['back_floor']:.1%} by chance), and {figures['picked']['10']['1']:.1%} are picked of many"
            )
    watch.say(f"sha256 {made.digest}\nlicence {info['licence']}: {WORD_FOR_WORD}")
    return made
