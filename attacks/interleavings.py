"""The protocol of a ledger's reservations under every interleaving of runs, and crashes at every step."""

from __future__ import annotations

from attacks.attempt import Attempt
from tests.ledger import test_protocol as protocol

TWO = [(releases, shards, order) for releases in ("ab", "aa") for shards in ((0,), (0, 1)) for order in (0, 1, -1)]
THREE = (("aab", 1.0), ("abc", 1.0), ("abc", 2.0), ("abb", 2.0))


def attack(scale: float) -> Attempt:
    """Explore all states; a protocol without a second look must be caught."""
    attempt = Attempt()
    for releases, shards, order in TWO:
        _explore(attempt, protocol.runs(*releases, shards=shards), order, f"two runs, {releases}")
    if scale >= 1:
        for releases, cap in THREE:
            _explore(attempt, protocol.runs(*releases, cap=cap), 0, f"three runs, {releases}")
    try:
        protocol.explored(protocol.runs(*"ab", protocol=protocol.without_a_second_look))
    except AssertionError:
        attempt.tried("controls: broken protocols, caught")
    else:
        attempt.broken.append("the model no longer catches a protocol without a second look")
    return attempt


def _explore(attempt: Attempt, runs: list[protocol.Run], order: int, what: str) -> None:
    try:
        states, _ = protocol.explored(runs, order=order)
    except AssertionError as error:
        attempt.broken.append(f"{what}: {error}")
        return
    attempt.tried("states of the protocol", states)
