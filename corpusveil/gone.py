"""Names of earlier versions that this version refuses, each with what replaces it.

The command line, files of settings, ``import corpusveil as cv`` and readers of artifacts look here before they call a
name unknown. ``tests/api/test_gone.py`` tries every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gone:
    """A name that is gone.

    ``name`` is a setting (``section.key``), one of its values (``section.key = value``), a Python name (``cv.name``) or
    what an artifact contains. ``instead`` ends the sentence "NAME: this is gone; …" and names settings as
    ``{section.key}``. ``options`` are the command lines that had it, such as ``space --spacing``, or commands.
    """

    name: str
    instead: str
    options: tuple[str, ...] = ()


_OF_CURVES = "'corpusveil mechanisms' shows what an epsilon keeps, and 'corpusveil privatize' chooses epsilon by a risk"
_FACTORS = "scale the vectors of words by public factors before you build the space; then distances have them"
_OF_PAIRS = "a label is learned from one text; 'corpusveil evaluate study collocations' has tasks of pairs"
_OF_AUDITS = "leave it out; in Python, cv.audit(draws=…, pairs=…, words=…) sets the size of an audit"
_OF_TRIALS = "an evaluation measures one release; 'corpusveil evaluate study' compares epsilons and mechanisms"
_OF_DELTA = "a ledger adds up epsilons; {ledger.cap_ldp} holds over all metrics, and {budget.delta} is of one release"
_OF_SEARCH = "the search tries 32 originals, 16 in triples; in Python, Search(breadth=…, width=…) sets other numbers"
_RAY = "docs/frames.md has a recipe of ten lines: map_batches over cv.privatize_table"
_CONNECT = (
    "cv.privatize and privatize_frame take frames of Spark Connect; for files, use the engine spark on another master"
)
_DATASET = "give {budget.epsilon} for a document ({budget.per} document): epsilon times the words of an average text"
_ON_ENGINES = ("count", "score", "tokenize", "model", "denoise", "privatize")
# A table: a name a row.
# fmt: off
GONE = (
    Gone("output.log", "the private records have the figures of a run, and --progress lines prints them",
         ("privatize --log",)),
    Gone("budget.weights", "a document's words share {budget.epsilon} evenly", ("privatize --weights",)),
    Gone("budget.allocation = position", "a document's words share {budget.epsilon} evenly",
         ("privatize --allocation position",)),
    Gone("budget.allocation = per-word", "word-share gives a word E/n, and uniform a word or collocation E/m",
         ("privatize --allocation per-word",)),
    Gone("text.tokenizer = optimal", "mst takes collocations by their scores", ("privatize --tokenizer optimal",)),
    Gone("collocations.tokenizer = optimal", "mst takes collocations by their scores",
         ("tokenize --tokenizer optimal",)),
    Gone("cv.term_vectors", "cv.privatize with cv.SynTf replaces each word, with epsilon for any two words"),
    Gone("cv.dataset_card", "the page <output>.report.html says in words what a release guarantees"),
    Gone("cv.croissant", "manifest.json has every condition of a release and the digests of its files"),
    Gone("corpusveil compile", "each process builds the rows of the words that it meets", ("compile",)),
    Gone("denoise.unknown_share", "the share is that of the model's text; in Python, Search(unknown_share=…) sets it",
         ("denoise --unknown-share",)),
    Gone("embeddings.hs", "vectors are trained with negative samples, {embeddings.negative}", ("train --hs",)),
    Gone("embeddings.spool", "all tokens are written to one file in the temporary folder, which TMPDIR names",
         ("train --spool",)),
    Gone("ledger.cap_delta", _OF_DELTA, ("privatize --cap-delta",)),
    Gone("corpusveil ledger show --delta", "a ledger adds up epsilons, and nats of plain LDP over all metrics",
         ("ledger show --delta",)),
    Gone("collocations.add_to", "count all files, those that were counted before as well",
         ("count --add-to",)),
    Gone("ledger.spill", "a decision spills into the temporary folder, which TMPDIR names",
         ("privatize --ledger-spill",)),
    Gone("schedule.prometheus",
         "the exit status of a start says how it ended, and 'corpusveil schedule FILE.toml --status' shows the runs"),
    Gone("schedule.at", "'corpusveil schedule FILE.toml --write KIND --at CRON' says when a schedule starts"),
    Gone("audit.draws", _OF_AUDITS, ("audit --draws",)),
    Gone("audit.pairs", _OF_AUDITS, ("audit --pairs",)),
    Gone("audit.words", _OF_AUDITS, ("audit --words",)),
    Gone("denoise.aim", "denoising writes the likeliest word in each place; leave it out", ("denoise --aim",)),
    Gone("budget.profile", "docs/studies.md has the settings of each study", ("privatize --profile",)),
    Gone("cv.profile", "docs/studies.md has the settings of each study"),
    Gone("budget.average_words", _DATASET, ("privatize --average-words",)),
    Gone("budget.allocation = dataset", _DATASET, ("privatize --allocation dataset",)),
    Gone("budget.field_weights", "give each text column's release its own part of {budget.epsilon}",
         ("privatize --field-weights",)),
    Gone("output.csv_formulas", "let the spreadsheet import cells as text; leave it out",
         ("privatize --csv-formulas",)),
    Gone("text.markup = keep", "strip releases the text of HTML without its tags",
         ("privatize --markup keep", "preview --markup keep")),
    Gone("engine.name = ray", _RAY, tuple(f"{command} --engine ray" for command in _ON_ENGINES)),
    Gone("cv.Ray", _RAY),
    Gone("cv.privatize_dataset", _RAY),
    Gone("an option of an engine of another package", "an engine takes workers, master, runner and options",
         tuple(f"{command} --engine-option" for command in _ON_ENGINES)),
    Gone("engine.name = connect", _CONNECT, tuple(f"{command} --engine connect" for command in _ON_ENGINES)),
    Gone("an engine on Spark Connect", _CONNECT),
    Gone("length.growth", "it is called {length.pad_growth} now"),
    Gone("space.spacing", "every word has one step of a list; words of like frequency are neighbors by {space.balance}",
         ("space --spacing",)),
    Gone("space.importance", _FACTORS, ("space --importance",)),
    Gone("space.cell", "a list is one exact order; {space.vocabulary} keeps the words that are needed",
         ("space --cell",)),
    Gone("denoise.breadth", _OF_SEARCH, ("denoise --breadth",)),
    Gone("denoise.width", _OF_SEARCH, ("denoise --width",)),
    Gone("space.union", "a space has the words that all its embeddings have", ("space --union",)),
    Gone("a space whose lists have different words", "build the space again, without union"),
    Gone("space.sensitive", _FACTORS, ("space --sensitive",)),
    Gone("space.harmless", _FACTORS, ("space --harmless",)),
    Gone("a pickle of gensim", "in gensim, save the vectors by kv.save_word2vec_format('vectors.bin', binary=True)"),
    Gone("a space with arcs", "build the space again, without spacing, sensitive and harmless"),
    Gone("length.noise", "it is called {length.epsilon} now"),
    Gone("audit.mechanisms", "it is called {audit.mechanism} now, and an audit checks one"),
    Gone("audit.curve", _OF_CURVES, ("audit --curve",)),
    Gone("audit.inputs", _OF_CURVES, ("audit --inputs",)),
    Gone("audit.risks", _OF_CURVES, ("audit --risk",)),
    Gone("evaluate.epsilons", _OF_TRIALS, ("evaluate release --epsilon",)),
    Gone("evaluate.mechanisms", _OF_TRIALS, ("evaluate release --mechanism",)),
    Gone("evaluate.words", "the words of the space are looked up", ("evaluate release --words",)),
    Gone("evaluate.second", _OF_PAIRS, ("evaluate release --second",)),
    Gone("evaluate.second_private", _OF_PAIRS, ("evaluate release --second-private",)),
    Gone("budget.risk_of = context",
         "a risk is of content words; without {budget.risk_of} it is what a reader recovers of these from context",
         ("privatize --risk-of context",)),
    Gone("cv.risk_curve", "cv.word_risk says what a reader guesses at an epsilon, and cv.epsilon_for_risk chooses it"),
    Gone("cv.RiskCurve", "cv.word_risk returns what a reader guesses at an epsilon"),
    Gone("cv.evaluation", "evaluation is corpusveil_evaluate now: pip install 'corpusveil[evaluate]'"),
)
# fmt: on
_BY_NAME = {row.name: row for row in GONE}


def gone_setting(place: str, value: object = None) -> str | None:
    """Return the sentence for a setting, or for one of its values; None if it is not gone."""
    row = _BY_NAME.get(place if value is None else f"{place} = {value}")
    return None if row is None else f"this is gone; {row.instead}"


def gone_name(name: str) -> str | None:
    """Return the sentence for a Python name or for a part of an artifact; None if it is not gone."""
    row = _BY_NAME.get(name)
    return None if row is None else f"{name}: this is gone; {row.instead}."


def gone_option(arguments: Sequence[str]) -> tuple[str, str, str] | None:
    """Return command, option (with its value if only that is gone) and sentence for what is gone in a command line."""
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for row in GONE:
        for line in row.options:
            command, dashes, rest = line.partition(" --")
            option = f"{dashes}{rest}".split()
            if words[: len(command.split())] == command.split() and _contains(words, option):
                return command, " ".join(option) or command, f"this is gone; {row.instead}"
    return None


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    return any(list(words[at : at + len(part)]) == list(part) for at in range(len(words)))
