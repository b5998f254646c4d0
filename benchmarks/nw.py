"""N_w (share of draws equal to the input) and S_w (distinct outputs a word) on the peers' inputs.

They are compared with the published definition; the control, another epsilon, must be distinguished.
"""

import math

import numpy as np

import corpusveil as cv
from benchmarks import peers
from benchmarks.report import Table
from corpusveil.sampling.draws import DrawKey, Draws

RUNS = 100
ERRORS = 3
CONTROL = 1.1
"""The control draws at ε times this; only ε = 1 leaves enough changed words to see it."""


def run() -> list[Table]:
    return [measured(1), measured(5)]


def measured(lists: int) -> Table:
    definition = peers.results("definition", "1-Diffractor geometric")
    peer = peers.results("dp-diffractor", "geometric", lists)
    mechanism = cv.mechanism("ring-geometric", cv.load_space(peers.space(lists)))
    probe = (peers.folder() / "probe_words.txt").read_text(encoding="utf-8").split()
    ids = np.array([mechanism.space.id(word) for word in probe], dtype=np.int32)
    key = DrawKey.derive(cv.Key.for_tests(), "00" * 32)  # the same figures in every run
    table = Table(
        f"N_w and S_w on the peers' inputs, {len(ids)} words × {RUNS} draws, {len(mechanism.space):,} words, "
        f"{'one list' if lists == 1 else f'{lists} lists of as many embeddings'}",
        ("ε", "definition N_w", "ours N_w", "standard error", "ours exact", "ours S_w", "S_w exact", "peer N_w",
         "peer S_w"),
    )  # fmt: skip

    def draw(epsilon: float) -> tuple[float, float]:
        asked = np.repeat(ids, RUNS)
        out = mechanism.privatize(asked, epsilon, Draws.of_tokens(key, asked.size, document=f"N_w {epsilon}"))
        return float((out == asked).mean()), float(np.mean([np.unique(row).size for row in out.reshape(-1, RUNS)]))

    for epsilon, row in definition.items():
        said, (seen, distinct) = row["N_w"], draw(epsilon)
        laws = [mechanism.distribution(int(word), epsilon) for word in ids]
        exact = float(np.mean([law[word] for law, word in zip(laws, ids, strict=True)]))
        error = math.sqrt(exact * (1 - exact) / (ids.size * RUNS))
        expected = float(np.mean([(1 - (1 - law) ** RUNS).sum() for law in laws]))
        theirs = peer.get(epsilon, {"N_w": math.nan, "S_w_mean": math.nan})
        shares = [f"{share:.4f}" for share in (said, seen, error, exact)]
        counts = [f"{count:.2f}" for count in (distinct, expected)]
        table.rows.append((f"{epsilon:g}", *shares, *counts, f"{theirs['N_w']:.4f}", f"{theirs['S_w_mean']:.2f}"))
        within = max(abs(seen - said), abs(exact - said)) <= ERRORS * error
        table.target(f"ε = {epsilon:g}: within {ERRORS} standard errors of the definition", met=within)
        if epsilon == 1:
            other, _ = draw(CONTROL * epsilon)
            words = f"control at ε = {CONTROL * epsilon:g}: N_w {other:.4f} is told apart from ε = {epsilon:g}"
            table.target(words, met=abs(other - said) > ERRORS * error)
    table.notes.append("Peer: dp-diffractor 0.2.1, as kept in the peers' results.json; definition: the same file.")
    return table
