"""What a release promises, in fields and in words."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from corpusveil.sampling.weights import FLOOR, TOTAL
from corpusveil.text.policy import ROLE_NAMES
from corpusveil.transforms.kernel import public_weights
from corpusveil.transforms.release import Release


def statement(release: Release) -> dict[str, Any]:
    """Return the guarantee of a release as JSON-able fields: for one token, for a document, and what is disclosed."""
    mechanism, budget, policy = release.mechanism, release.budget, release.policy
    token = mechanism.guarantee(budget.epsilon)
    if budget.per == "document" and token.holds:  # shares differ by document, so only what holds at any share is said
        token = dataclasses.replace(token, metric=mechanism.distance, plain_ldp=math.log(TOTAL / FLOOR))
    public = public_weights(mechanism.space).astype("float64") / TOTAL
    resampled = [name for name in ROLE_NAMES[1:] if getattr(policy, name) == "resample"]
    lines: list[str] = []
    if token.holds:
        if budget.per == "token":
            lines.append(
                f"Each replaced word: {token.epsilon:g} times the distance, the distance being {token.metric}; for any "
                f"two words at most {token.plain_ldp:.4g} nats."
            )
        else:
            lines.append(
                f"Each replaced word of a document with m of them: {budget.epsilon:g} / m times the distance, rounded "
                f"down to the grid 2^(j/8), the distance being {mechanism.distance}."
            )
        lines += budget.promises()
        lines += token.notes
    else:
        lines.append("No guarantee holds: " + " ".join(token.notes))
    if resampled and token.holds:
        one = budget.per == "token"
        bound = mechanism.unknown_bound(budget.epsilon, public) if one else mechanism.unknown_bound_at_most(public)
        lines.append(
            f"Tokens under 'resample' ({', '.join(resampled)}) are drawn from public counts, independently of the "
            "token: two of them can't be told apart. One of them against a word of the vocabulary: at most "
            f"{bound:.4g} nats{'' if one else ', whatever its share of the budget'}."
        )
    return {
        "guarantee": {**token.as_dict(), "disclosed": [*policy.disclosed(), *token.disclosed]},
        "guarantee_in_words": lines,
    }
