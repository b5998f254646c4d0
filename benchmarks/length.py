"""The end of a padded document: what a reader with a language model finds out, by epsilon.

Texts are passages of 101 to 200 words of one cell of the grid (``--pad 100``). The reader knows the mechanism, its
epsilon and the grid, and how words follow one another: a trigram model of the *same* articles, which is more than a
reader has. At each place a word is the text's own (as likely as the model says after the two released words before it,
if all three were kept, else as in public counts) or a filler (as in public counts); the guess is the posterior median.
"""

import numpy as np
import pyarrow as pa

import corpusveil as cv
from benchmarks.report import Table
from corpusveil.collocations.public_texts import encyclopedia
from corpusveil.text.tokens import Tokenizer
from corpusveil_evaluate.studies.bundled_text import passages

PAD, TEXTS = 100, 300
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
ONE_NAT = 1 << 16


def run() -> list[Table]:
    space, model = cv.demo_space(), cv.demo_model()
    mechanism = cv.mechanism("ring-geometric", space)
    texts, own = _texts(space)
    table = Table(
        f"Guesses of the length of {len(texts)} documents of {PAD + 1} to {2 * PAD} words, filled up to {2 * PAD}",
        ("epsilon", "words unchanged", "mean error, words", "error without the text", "within 3 words", "by chance"),
    )
    policy = cv.TextPolicy(punctuation="drop", contacts="drop")
    blind = np.abs(own - np.median(own)).mean()
    public = np.maximum(space.counts, 1) / np.maximum(space.counts, 1).sum()
    for epsilon in EPSILONS:
        release = cv.Release(mechanism, cv.Budget(epsilon), policy, cv.Key.for_tests(), length=cv.LengthGrid(PAD))
        made = cv.privatize(texts, release, ids=list(range(len(texts))))
        kept = mechanism.retention(epsilon)
        error = np.abs(np.array([_guess(text.split(), space, model, public, kept**3) for text in made]) - own)
        everywhere = np.abs(own - np.arange(PAD + 1, 2 * PAD)[:, None])
        share = [float((one <= 3).mean()) for one in (error, everywhere)]
        table.rows.append((epsilon, kept, float(error.mean()), float(blind), *share))
    table.notes.append("The model has seen the texts; a reader's model has not, and errs more.")
    return [table]


def _texts(space: cv.Space) -> tuple[list[str], np.ndarray]:
    """Return texts and how many of their words are released, fillers not counted."""
    tokenizer = Tokenizer.of_words(space.vocabulary.words)
    long = [one for text in encyclopedia() for one in passages(text, 210)]
    random, texts, own = np.random.default_rng(0), [], []
    for text in long[:: max(1, len(long) // TEXTS)][:TEXTS]:
        tokens = tokenizer.tokenize(pa.array([text], pa.large_string()))
        words = [tokens.text(at) for at in range(len(tokens)) if tokens.ids[at] >= 0]  # known words in their order
        size = int(random.integers(PAD + 1, 2 * PAD + 1))
        if len(words) >= size:
            texts.append(" ".join(words[:size]))
            own.append(size)
    return texts, np.array(own)


def _guess(words: list[str], space: cv.Space, model: object, public: np.ndarray, whole: float) -> int:
    ids = model.ids(words)  # type: ignore[attr-defined]
    known = np.where(ids < len(model), ids, -1).astype(np.int32)  # type: ignore[arg-type]
    before, last = (np.concatenate([np.full(by, -1, np.int32), known[:-by]]) for by in (2, 1))
    logs = model.score(before, last, known) / ONE_NAT  # type: ignore[attr-defined]
    ratio = np.exp(logs) / public[[space.id(word) for word in words]]
    gain = np.cumsum(np.log(whole * ratio + 1 - whole))[PAD:]
    posterior = np.cumsum(np.exp(gain - gain.max()))
    return PAD + 1 + int(np.searchsorted(posterior, posterior[-1] / 2))
