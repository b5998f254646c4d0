"""The four strategies of the collocation study (Meisenbacher, Chevli, Matthes 2024): presets for ``privatize``.

The budget of a document is E = epsilon_base * A, where A is the average number of words of a text of that kind. A has
to come from public knowledge: computed from the private corpus, it would disclose something about it, outside every
guarantee.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from corpusveil.errors import ConflictError, not_a_choice

STRATEGIES: Mapping[str, Mapping[str, str]] = {
    "s1": {"per": "document", "tokenizer": "word", "allocation": "word-share", "stop_words": "keep"},
    "s2": {"per": "document", "tokenizer": "gst", "allocation": "word-share"},
    "s3": {"per": "document", "tokenizer": "gst", "allocation": "uniform"},
    "s4": {"per": "document", "tokenizer": "mst", "allocation": "uniform"},
}
"""S1: words, E / n each, stop words left as they are. S2: GST, E / n a unit. S3: GST, E / m. S4: MST, E / m."""


def follow(
    name: str, options: Mapping[str, Any], explicit: Collection[str], epsilon: float, average_words: float | None
) -> tuple[dict[str, Any], float]:
    """Return the options of a strategy, and the budget of a document.

    Raises UserError for an unknown name, for an explicit option that contradicts it, and without the average.
    """
    from corpusveil.budget.budget import dataset_budget  # the names of strategies, which help shows, need no NumPy

    if name not in STRATEGIES:
        raise not_a_choice("strategy", name, STRATEGIES)
    own = STRATEGIES[name]
    for option, value in own.items():
        if option in explicit and options[option] != value:
            raise ConflictError(f"{option} = {options[option]} contradicts the strategy {name}, which has {value}.")
    return {**options, **own}, dataset_budget(epsilon, average_words)
