"""The utility of private text, and what attackers learn: over epsilon, over strategies, at equal risk.

Takes about a quarter of an hour of one core the first time; models of collocations are kept in the work folder.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Skipped, Table
from corpusveil.choices import STRATEGIES as PUBLISHED
from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.collocations.count import count_corpus
from corpusveil.collocations.measures import Scoring, connector_words
from corpusveil.collocations.score import score_counts
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.collocations.training import train_vectors
from corpusveil.collocations.word2vec import Training
from corpusveil.evaluation.attacks.attribute_inference import infer_attribute
from corpusveil.evaluation.attacks.risk_curve import AtRisk, Point, at_equal_risk, point
from corpusveil.evaluation.statistics.encoders import AveragedVectors, Encoder
from corpusveil.evaluation.statistics.similarity import cosine
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts, read_task
from corpusveil.evaluation.utility.text_classifiers import Tfidf
from corpusveil.evaluation.utility.training_modes import MODES, Summary, baselines, utility
from corpusveil.jobs.local import Local
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.risk import Prior, smoothed
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.spaces import Space
from corpusveil.spaces.tour_improvement import neighbors
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.artifacts import is_artifact

SEEDS, FEWER_SEEDS = 5, 3
EPSILONS = (0.5, 1.0, 3.0, 5.0, 10.0)
SIZES = {"sst2": (2000, 872), "ag_news": (1500, 1000), "blog_gender": (1500, 852)}
"""Rows for training and testing; all rows of a smaller set."""

BASES = (1.0, 5.0, 10.0, 25.0)
FROM = 5.0
"""The base from which collocations should help, by the study."""
AVERAGE_WORDS = {"sst2": 8.82, "ag_news": 31.0}
"""SST-2 as the collocation study gives it, AG News as counted on the public set."""
STRATEGY_SIZES = {"sst2": (1000, 600), "ag_news": (400, 300)}
STRATEGIES = {
    "S1": "word", "words": "word", "words, GST space": "gst", "GST": "gst", "GST, scaled": "gst-scaled", "MST": "mst",
}  # fmt: skip
"""Strategy -> space. ``gst-scaled``: vectors of GST, its nearest tokens as far apart as nearest words."""
SHARDS, TIMES, DIMENSIONS, EPOCHS = 2, 10, 100, 2
"""Of the collocation models: shards, how often a collocation occurs at least, and word2vec."""

RISKS = (0.3, 0.5, 0.75, 0.9)
TRIED = (0.001, 0.002, 0.005, 0.02, 0.05, 0.1, 0.35, 1.0, 2.0, 3.0)
ATTACKED, SCALES = 4000, (0.0, 0.03, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
RISK_SIZES = (1000, 872)
TIE = 0.01
"""Differences that count as equal: a deviation of the noise."""
AT_ONCE = 256
"""Samples that are held against all words at once."""

MODEL = Tfidf()


def run() -> list[Table]:
    shared = inputs.data()
    if shared is None or not all((shared / "tasks" / f"{name}.parquet").is_file() for name in SIZES):
        raise Skipped("the shared data and its task sets are not on this machine.")
    models = made_models()
    space = cv.load_space(inputs.space())
    return [
        over_epsilon(shared, space),
        *of_strategies(shared, models, space),
        *at_equal(shared, space, cv.load_space(str(models / "space-word"))),
    ]


def made_models() -> Path:
    """Make a collocation table and, of words, GST and MST, a space of the same corpus, where they are not."""
    folder, engine, shards = inputs.work() / "utility", Local(), inputs.shards()[:SHARDS]
    folder.mkdir(exist_ok=True)
    if not is_artifact(f"{folder}/counts"):
        count_corpus(shards, f"{folder}/counts", engine)
    if not is_artifact(f"{folder}/table"):
        score_counts(
            f"{folder}/counts", f"{folder}/table", engine, Scoring(min_count=TIMES, connectors=connector_words())
        )
    for name in ("word", "gst", "mst"):
        if not is_artifact(f"{folder}/tokens-{name}"):
            table = None if name == "word" else f"{folder}/table"
            tokenize_corpus(shards, f"{folder}/tokens-{name}", engine, name, table)
        if not is_artifact(f"{folder}/vectors-{name}"):
            training = Training(dimensions=DIMENSIONS, epochs=EPOCHS)
            train_vectors(f"{folder}/tokens-{name}", f"{folder}/vectors-{name}", engine, training)
        if not is_artifact(f"{folder}/space-{name}"):
            cv.build_space(cv.read_vectors(f"{folder}/vectors-{name}")).save(f"{folder}/space-{name}")
    return folder


def subset(shared: Path, name: str, sizes: tuple[int, int]) -> LabelledTexts:
    """Return so many rows to train on and to test on, drawn by a fixed seed."""
    task = read_task(str(shared / "tasks" / f"{name}.parquet"), split="split", name=name)
    rng = np.random.default_rng(0)
    parts = zip(task.train_and_test(0), sizes, strict=True)
    return task.take(np.concatenate([np.sort(rng.permutation(rows)[:most]) for rows, most in parts]))


def releases(
    task: LabelledTexts,
    mechanism: Mechanism,
    budget: cv.Budget,
    seeds: int,
    policy: cv.TextPolicy | None = None,
    joined: Any = None,
) -> list[list[str]]:
    """Return private versions of a task under several keys, the same in every run."""
    keys = [cv.Key(hashlib.sha256(f"benchmark {seed}".encode()).digest()) for seed in range(seeds)]
    made = [cv.Release(mechanism, budget, policy or cv.TextPolicy(), key, joined) for key in keys]
    return [cv.privatize(list(task.texts), one, cv.RowNumbers(task.name)) for one in made]


def figure(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


def alike(task: LabelledTexts, privates: Iterable[Sequence[str]], encoder: Encoder) -> list[float]:
    return [float(np.mean(cosine(task.texts, private, encoder))) for private in privates]


def over_epsilon(shared: Path, space: Space) -> Table:
    """Utility and attribute inference over epsilon."""
    table = Table(
        f"Accuracy over ε a word, ring-geometric, TF-IDF, {SEEDS} keys; mean ± deviation over keys",
        (
            "task",
            "trained to tested on",
            *(f"ε = {epsilon:g}" for epsilon in EPSILONS),
            "original text",
            "constant",
            "ρ",
        ),
    )
    mechanism = cv.mechanism("ring-geometric", space)
    for name, sizes in SIZES.items():
        task = subset(shared, name, sizes)
        known = baselines(task, MODEL, range(SEEDS))
        found: dict[str, list[Summary]] = {}
        for epsilon in EPSILONS:
            privates = releases(task, mechanism, cv.Budget(epsilon), SEEDS)
            if name == "blog_gender":
                for attacker in ("static", "adaptive"):
                    told = infer_attribute(task, privates, attacker, MODEL, originals=known)
                    found.setdefault(f"{attacker} attacker", []).append(told)
            else:
                for mode in MODES:
                    found.setdefault(mode, []).append(utility(task, privates, mode, MODEL, originals=known))
        for mode, told in found.items():
            rank = float(stats.spearmanr(EPSILONS, [one.mean for one in told]).statistic)
            one = told[0]
            table.rows.append((name, mode, *(figure(one.values) for one in told), one.baseline, one.floor, rank))
            if name == "blog_gender":
                table.target(f"{name}, {mode}: rank correlation with ε {rank:.2f}, above 0 asked", met=rank > 0)
            else:
                table.target(f"{name}, {mode}: rank correlation with ε {rank:.2f}, above 0.9 asked", met=rank > 0.9)
    sizes = ", ".join(f"{name} {train:,} and {test:,}" for name, (train, test) in SIZES.items())
    table.notes.append(
        f"Rows trained and tested on: {sizes}. Their split is given, so deviations are of the noise alone."
    )
    table.notes.append(
        "ρ: Spearman's of the five means; one swap of neighbours makes it 0.9, so above 0.9 is strict order."
    )
    return table


def of_strategies(shared: Path, models: Path, neutral: Space) -> list[Table]:
    """Words, GST and MST at equal budget of a document."""
    spaces = {name: cv.load_space(str(models / f"space-{name}")) for name in ("word", "gst", "mst")}
    spaces["gst-scaled"] = scaled(spaces["gst"], nearest(spaces["word"]) / nearest(spaces["gst"]))
    joined = load_collocations(f"{models}/table")
    encoders = {
        "corpus words": AveragedVectors(spaces["word"], centered=True),
        "minilm": AveragedVectors(neutral, centered=True),
    }
    similar = Table(
        "Similarity of meaning at E = ε_base × A a document: averaged vectors, centered",
        ("mechanism", "task", "vectors", "ε_base", *STRATEGIES),
    )
    useful = Table(
        f"Accuracy at E = ε_base × A a document: TF-IDF, private to private, {FEWER_SEEDS} keys",
        ("mechanism", "task", "ε_base", *STRATEGIES, "original text", "constant"),
    )
    for name in ("ring-geometric", "cmp"):
        mechanisms = {model: cv.mechanism(name, space) for model, space in spaces.items()}
        compared: dict[str, list[dict[str, float]]] = {"similarity": [], "accuracy": []}
        for data, sizes in STRATEGY_SIZES.items():
            task = subset(shared, data, sizes)
            known = baselines(task, MODEL, range(FEWER_SEEDS))
            for base in BASES:
                close: dict[str, dict[str, float]] = {encoder: {} for encoder in encoders}
                kept: dict[str, Summary] = {}
                for strategy, model in STRATEGIES.items():
                    privates = by_strategy(task, strategy, mechanisms[model], base, joined)
                    for encoder, vectors in encoders.items():
                        close[encoder][strategy] = float(np.mean(alike(task, privates, vectors)))
                    kept[strategy] = utility(
                        task, privates, "private-private", MODEL, fewest=FEWER_SEEDS, originals=known
                    )
                for encoder, row in close.items():
                    similar.rows.append((name, data, encoder, base, *(round(value, 3) for value in row.values())))
                    if base >= FROM:
                        compared["similarity"].append(row)
                if base >= FROM:
                    compared["accuracy"].append({strategy: one.mean for strategy, one in kept.items()})
                last = kept["GST"]
                useful.rows.append(
                    (name, data, base, *(figure(one.values) for one in kept.values()), last.baseline, last.floor)
                )
        for table, rows in zip((similar, useful), compared.values(), strict=True):
            for higher, lower in (
                ("GST", "words"),
                ("GST, scaled", "words"),
                ("GST", "words, GST space"),
                ("GST", "MST"),
            ):
                above = sum(row[higher] > row[lower] for row in rows)
                words = f"{name}, ε_base {FROM:g} and more: {higher} above {lower} in {above} of {len(rows)} rows"
                table.target(words, met=above == len(rows))
    meant = "S1: as published, stop words left as they are. words: E / n each, stop words too. GST, MST: E / m"
    for table in (similar, useful):
        table.notes.append(f"{meant}. A: SST-2 {AVERAGE_WORDS['sst2']}, AG News {AVERAGE_WORDS['ag_news']:g}.")
    sizes = ", ".join(f"{model} {len(space):,}" for model, space in spaces.items())
    similar.notes.append(
        f"Spaces of {SHARDS} shards of c4-like, word2vec, {DIMENSIONS} dimensions, {EPOCHS} epochs; tokens: {sizes}."
    )
    return [similar, useful]


def nearest(space: Space) -> float:
    """Return the median distance of a token to the nearest other one."""
    near = neighbors(space.vectors, 1)[:, 0]
    return float(np.median(np.linalg.norm(space.vectors - space.vectors[near], axis=1)))


def scaled(space: Space, factor: float) -> Space:
    """Return a space with longer or shorter vectors, and one list."""
    longer = (space.vectors * factor).astype(np.float32)
    return cv.build_space(Vectors(list(space.vocabulary.words), longer, "scaled", space.counts))


def by_strategy(task: LabelledTexts, strategy: str, mechanism: Mechanism, base: float, joined: Any) -> list[list[str]]:
    published = {"GST": "s3", "GST, scaled": "s3", "MST": "s4"}.get(strategy, "s1")
    options, budget = dict(PUBLISHED[published]), base * AVERAGE_WORDS[task.name]
    per, allocation = options.pop("per"), options.pop("allocation")
    if strategy.startswith("words"):
        options.pop("stop_words")
    table = None if options["tokenizer"] == "word" else joined
    return releases(task, mechanism, cv.Budget(budget, per, allocation), FEWER_SEEDS, cv.TextPolicy(**options), table)


def at_equal(shared: Path, space: Space, counted: Space) -> list[Table]:
    """Ring-geometric compared with 1-Diffractor and CMP, at equal risk and at equal plain LDP."""
    task = subset(shared, "sst2", RISK_SIZES)
    known = baselines(task, MODEL, range(FEWER_SEEDS))
    encoder = AveragedVectors(space, centered=True)
    prior = prior_by(space, counted)
    ring, diffractor, cmp = (cv.mechanism(name, space) for name in ("ring-geometric", "diffractor-geometric", "cmp"))
    points: list[Point] = [point(one, epsilon, prior) for one in (ring, diffractor) for epsilon in TRIED]
    found = at_equal_risk(points, RISKS)
    noisy = sampled_curve(cmp, prior)
    columns = ("mechanism", "ε", "risk", "N_w", "plain LDP", "similarity", "accuracy", "original text", "constant")
    same_risk = Table(f"SST-2 at equal Bayes-optimal reconstruction, {FEWER_SEEDS} keys", ("at risk", *columns))

    def row(mechanism: Mechanism, epsilon: float, risk: float) -> tuple[Any, ...]:
        privates = releases(task, mechanism, cv.Budget(epsilon), FEWER_SEEDS)
        told = utility(task, privates, "private-private", MODEL, fewest=FEWER_SEEDS, originals=known)
        plain = mechanism.guarantee(epsilon).plain_ldp
        close = figure(alike(task, privates, encoder))
        kept = (math.nan if plain is None else plain, close, figure(told.values), told.baseline, told.floor)
        return (mechanism.name, epsilon, risk, mechanism.retention(epsilon), *kept)

    for risk in RISKS:
        at: dict[str, AtRisk] = {one.mechanism: one for one in found if one.risk == risk}
        for mechanism in (ring, diffractor):
            if (one := at.get(mechanism.name)) is not None:
                actual = point(mechanism, one.epsilon, prior)
                same_risk.rows.append((risk, *row(mechanism, one.epsilon, actual.risk)))
        epsilon = float(np.exp(np.interp(risk, [risk for _, risk in noisy], [math.log(one) for one, _ in noisy])))
        same_risk.rows.append((risk, *row(cmp, epsilon, sampled_risk(cmp, epsilon, prior, "check"))))
    same_risk.notes += [
        f"Risk: how often the best guess of any of {prior.words.size:,} words is right; unseen {prior.guess:.3f}.",
        f"CMP has no exact law: its risk is a weaker attacker's on {ATTACKED // 2:,} sampled words, a lower bound.",
    ]
    same_bound = Table(f"SST-2 at equal plain LDP, {FEWER_SEEDS} keys", ("as of ring at ε", *columns))
    for epsilon in (1.0, 3.0):
        bound = ring.guarantee(epsilon).plain_ldp
        for mechanism in (ring, diffractor, cmp):
            equal = epsilon if mechanism is ring else epsilon_of(mechanism, bound)
            risk = sampled_risk(cmp, equal, prior, "") if mechanism is cmp else point(mechanism, equal, prior).risk
            same_bound.rows.append((epsilon, *row(mechanism, equal, risk)))
    same_bound.notes.append(
        "Plain LDP: nats between any two words. Of 1-Diffractor it is ε (n - 1), of CMP ε × diameter."
    )
    compare(same_risk, "risk")
    compare(same_bound, "plain LDP, that of ring at ε =")
    return [same_risk, same_bound]


def compare(table: Table, equal: str) -> None:
    """Say of each group of equal rows whether ring's text is the more similar, and the more useful."""
    for group in dict.fromkeys(row[0] for row in table.rows):
        rows = {row[1]: row for row in table.rows if row[0] == group}
        ring = rows.pop("ring-geometric", None)
        for name, other in rows.items() if ring else ():
            for at, measure in ((6, "similarity"), (7, "accuracy")):
                ours, theirs = (float(row[at].split()[0]) for row in (ring, other))
                words = f"{equal} {group:g}: ring's {measure} {ours:.3f}, at least {name}'s {theirs:.3f} less 0.01"
                table.target(words, met=ours >= theirs - TIE)


def prior_by(space: Space, counted: Space) -> Prior:
    """Return the public prior of a space's words by the counts of another."""
    counts = dict(zip(counted.vocabulary.words, counted.counts.tolist(), strict=True))
    known = np.array([counts.get(word, 0) for word in space.vocabulary.words], dtype=np.float64)
    return smoothed(known, float(counted.counts.sum()))


def sampled_curve(mechanism: Mechanism, prior: Prior) -> list[tuple[float, float]]:
    """Return risks over epsilons that take retention from little to nearly all."""
    ends = [bisected(mechanism.retention, share) for share in (0.01, 0.9)]
    return [(epsilon, sampled_risk(mechanism, epsilon, prior, "")) for epsilon in np.geomspace(*ends, 8).tolist()]


def sampled_risk(mechanism: Mechanism, epsilon: float, prior: Prior, name: str) -> float:
    """Return the success of an attacker who guesses by ``ln frequency - c epsilon distance``, c fitted on half."""
    drawn = np.random.default_rng(0).choice(prior.words.size, ATTACKED, p=prior.shares)
    draws = Draws.of_tokens(DrawKey.derive(cv.Key.for_tests(), "00" * 32), ATTACKED, document=name)
    seen = mechanism.space.vectors[mechanism.privatize(prior.words[drawn].astype(np.int32), epsilon, draws)]
    known = mechanism.space.vectors[prior.words]
    guesses = np.empty((len(SCALES), ATTACKED), np.int64)
    for first in range(0, ATTACKED, AT_ONCE):
        some = slice(first, first + AT_ONCE)
        squares = (seen[some] ** 2).sum(axis=1)[:, None] + (known**2).sum(axis=1) - 2 * seen[some] @ known.T
        far = np.sqrt(np.maximum(squares, 0))
        for guess, scale in zip(guesses, SCALES, strict=True):
            guess[some] = np.argmax(np.log(prior.shares) - scale * epsilon * far, axis=1)
    half = ATTACKED // 2
    best = max(guesses == drawn, key=lambda one: one[:half].sum())
    return float(best[half:].mean())


def epsilon_of(mechanism: Mechanism, bound: float) -> float:
    """Return the epsilon at which the plain LDP of a mechanism is this."""
    return bisected(lambda epsilon: mechanism.guarantee(epsilon).plain_ldp, bound)


def bisected(rising: Any, value: float) -> float:
    low, high = math.log(1e-6), math.log(1e6)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(math.exp(middle)) < value else (low, middle)
    return math.exp(low)
