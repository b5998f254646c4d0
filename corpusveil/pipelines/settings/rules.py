"""Rules between settings, each stated once.

A rule yields the place (``section.key``, or a section) that is at fault, and a sentence without a full stop; it names
other settings as ``{section.key}``, which becomes a key for a file and an option for the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from corpusveil.errors import UserError
from corpusveil.pipelines.fields import SECTIONS, Section
from corpusveil.storage.engine import ENGINES, settings_of

if TYPE_CHECKING:
    from corpusveil.pipelines.settings import Settings

OF_RELEASE = ("mechanism", "budget", "text", "spans", "key", "ledger", "output", "schedule")
"""The sections that only a release uses."""
NEEDED = ("corpus", "space", "mechanism", "budget", "output")
"""The sections that a release needs."""


def needed_of(store: bool) -> tuple[str, ...]:
    """Return the sections that a release needs; one by passages has the space of its store."""
    return tuple(name for name in NEEDED if not (store and name in ("space", "mechanism")))


def broken(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield contradictions between settings, then settings that others need and that are missing."""
    for rule in (_flow, _key, _budget, _store, _ledger, _text, _engine, _added, _missing):
        yield from rule(settings)


def _needs(other: str) -> str:
    return f"this key needs {other}; add it, or leave this key out"


def _flow(settings: Settings) -> Iterator[tuple[str, str]]:
    flow, embeddings, space = settings.collocations, settings.embeddings, settings.space
    if embeddings is not None and (flow is None or flow.tokens is None):
        yield "embeddings", "vectors are trained on tokens; add {collocations.tokens} and the keys that make them"
    if embeddings is not None and space is not None and space.vectors:
        yield "space.vectors", "{embeddings} trains the vectors of the space; leave out this key or {embeddings}"
    if space is not None and (space.teacher is None) != (not space.lessons):
        yield "space.teacher", "a teacher and its lessons, {space.lessons}, need each other; add or leave out both"
    if flow is not None and flow.input and flow.tokens is not None:
        yield from _table("collocations.tokenizer", flow.tokenizer, "collocations.table", flow.table)


def _key(settings: Settings) -> Iterator[tuple[str, str]]:
    given = [name for name in ("path", "environment", "test") if getattr(settings.key, name)]
    if len(given) > 1:
        yield f"key.{given[-1]}", "{key.path}, {key.environment} and {key.test} exclude each other; keep only one"


def _budget(settings: Settings) -> Iterator[tuple[str, str]]:
    budget = settings.budget
    if budget is None:
        return
    if budget.risk is not None and budget.epsilon is not None:
        yield "budget.risk", "this key chooses {budget.epsilon}; leave either out"
    if budget.risk is not None and budget.per != "token":
        yield "budget.risk", "this key is for the epsilon of a word; {budget.per} has to be token"
    if budget.per != "document" and budget.allocation != "uniform":
        yield "budget.allocation", f"{budget.allocation} is for a budget per document; add {{budget.per}} document"


def _store(settings: Settings) -> Iterator[tuple[str, str]]:
    """Refuse settings for words in a release by passages, and settings for passages in a release by words."""
    per, asked = settings.value("budget.per"), settings.store
    if asked is None:
        if per in ("paragraph", "sentence"):
            yield "budget.per", f"{per}: words are replaced one by one; choose token or document, or add {{store.path}}"
        return
    of_words = "this setting is for words, and {store.path} replaces whole passages, which hold no word of the input"
    for section in ("text", "spans"):
        for name in sorted(getattr(settings, section).model_fields_set):
            yield f"{section}.{name}", f"{of_words}; leave either out"
    if settings.value("budget.risk") is not None:
        yield "budget.risk", f"{of_words}; leave either out"
    if settings.mechanism is not None:
        yield "mechanism", f"{of_words}; leave either out"
    if per == "token" and settings.is_given("budget.per"):
        yield "budget.per", "token: passages are replaced, not words; choose document, paragraph or sentence"
    if asked.most_pieces is not None and per not in ("paragraph", "sentence"):
        yield "store.most_pieces", _needs("{budget.per} paragraph or sentence")


def _ledger(settings: Settings) -> Iterator[tuple[str, str]]:
    ledger = settings.ledger
    if ledger is None:
        return
    if ledger.path is None:
        yield "ledger.path", "this ledger, which {ledger.unit} and {ledger.cap} are about, is missing; add it"
    if ledger.cap is not None and not ledger.unit:
        unit = "add {ledger.unit}: a column such as customer_id, or content"
        yield "ledger.cap", f"a cap limits what a privacy unit spends; {unit}"


def _table(place: str, tokenizer: str, table_place: str, table: str | None) -> Iterator[tuple[str, str]]:
    if (tokenizer == "word") != (table is None):
        needs = "takes no" if tokenizer == "word" else "needs a"
        yield table_place, f"{{{place}}} {tokenizer} {needs} collocation table"


def _text(settings: Settings) -> Iterator[tuple[str, str]]:
    text = settings.text
    yield from _table("text.tokenizer", text.tokenizer, "text.collocations", text.collocations)
    try:
        text.policy()
    except UserError as error:
        yield "text", str(error).removesuffix(".")
    if settings.spans.treat and not settings.spans.find:
        yield "spans.treat", "nothing finds spans; add {spans.find}"


def _engine(settings: Settings) -> Iterator[tuple[str, str]]:
    """Refuse settings of other engines; each engine declares its own settings."""
    for name in settings.engine.chosen():
        if name not in settings_of(settings.engine.name):
            owners = " or ".join(engine for engine in ENGINES.names() if name in settings_of(engine))
            yield f"engine.{name}", _needs(f"{{engine.name}} {owners}")


def _of_others(settings: Settings) -> list[Section]:
    return [section for name in SECTIONS.names() if (section := getattr(settings, name)) is not None]


def _added(settings: Settings) -> Iterator[tuple[str, str]]:
    for section in _of_others(settings):
        yield from section.broken(settings.value)


def _missing(settings: Settings) -> Iterator[tuple[str, str]]:
    budget = settings.budget
    if budget is not None and budget.epsilon is None and budget.risk is None:
        yield "budget.epsilon", "this key is missing; add it, or add {budget.risk}, which chooses it"


def incomplete(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what a file for whole flows lacks."""
    release = [section for section in OF_RELEASE if section in settings.model_fields_set]
    for section in needed_of(settings.store is not None):
        if release and getattr(settings, section) is None:
            yield section, f"this section is missing; {{{release[0]}}} is for a release, which needs it"
    for added in _of_others(settings):
        yield from added.incomplete()
