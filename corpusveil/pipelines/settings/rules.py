"""Rules between settings, each stated once.

A rule yields the place (``section.key``, or a section) that is at fault, and a sentence without a full stop; it names
other settings as ``{section.key}``, which becomes a key for a file and an option for the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from corpusveil.errors import UserError
from corpusveil.jobs import registry
from corpusveil.pipelines.settings import presets

if TYPE_CHECKING:
    from corpusveil.pipelines.settings import Settings

Rule = Callable[["Settings"], Iterator[tuple[str, str]]]
OF_RELEASE = ("mechanism", "budget", "text", "length", "key", "ledger", "output", "schedule")
"""The sections that only a release uses."""
NEEDED = ("corpus", "space", "mechanism", "budget", "output")
"""The sections that a release needs."""


def broken(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield contradictions between settings."""
    for rule in (
        _flow,
        _key,
        _risk,
        _budget,
        presets.contradictions,
        _ledger,
        _text,
        _length,
        _engine,
        _schedule,
        _evaluate,
        _audit,
    ):
        yield from rule(settings)


def _needs(other: str) -> str:
    return f"this key needs {other}; add it, or leave this key out"


def lacking(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield missing settings, of which one of two is needed, or which another setting needs."""
    budget = settings.budget
    if budget is None:
        return
    if budget.epsilon is None and budget.risk is None:
        yield "budget.epsilon", "this key is missing; add it, or add {budget.risk}, which chooses it"
    if budget.risk is not None and budget.risk_of == "context" and risk_model(settings) is None:
        yield (
            "budget.model",
            (
                "{budget.risk_of} context needs a language model of public text; add this key "
                "(make the model with 'corpusveil model')"
            ),
        )


def risk_model(settings: Settings) -> str | None:
    """Return the address of the language model for a risk of context; by default that of [model]."""
    found: str | None = settings.value("budget.model") or settings.value("model.path")
    return found


def _flow(settings: Settings) -> Iterator[tuple[str, str]]:
    flow, embeddings, space = settings.collocations, settings.embeddings, settings.space
    if embeddings is not None and (flow is None or flow.tokens is None):
        yield "embeddings", "vectors are trained on tokens; add {collocations.tokens} and the keys that make them"
    if embeddings is not None and space is not None and space.vectors:
        yield "space.vectors", "{embeddings} trains the vectors of the space; leave out this key or {embeddings}"
    if flow is not None and flow.add_to is not None:
        for name in ("max_n", "min_count", "text", "hyphens"):
            if getattr(flow, name) != type(flow).model_fields[name].default:
                place = f"collocations.{name}"
                yield place, "{collocations.add_to} takes this from the earlier counts; leave it out"
    if (
        flow is not None
        and flow.input
        and flow.tokens is not None
        and (flow.tokenizer == "word") != (flow.table is None)
    ):
        needs = "takes no" if flow.tokenizer == "word" else "needs a"
        yield "collocations.table", f"{{collocations.tokenizer}} {flow.tokenizer} {needs} collocation table"
    if embeddings is not None and embeddings.trainer == "spark" and settings.engine.name not in ("local", "spark"):
        yield "embeddings.trainer", "the trainer spark runs on Spark, whatever the engine; leave {engine.name} out"


def _key(settings: Settings) -> Iterator[tuple[str, str]]:
    given = [name for name in ("path", "environment", "test") if getattr(settings.key, name)]
    if len(given) > 1:
        yield (
            f"key.{given[-1]}",
            "{key.path}, {key.environment} and {key.test} exclude each other; keep only one",
        )


def _risk(settings: Settings) -> Iterator[tuple[str, str]]:
    budget = settings.budget
    if budget is None:
        return
    if budget.risk is None:
        for name, value in (("risk_of", None if budget.risk_of == "word" else budget.risk_of), ("model", budget.model)):
            if value is not None:
                yield f"budget.{name}", _needs("{budget.risk}")
        return
    if budget.epsilon is not None:
        yield "budget.risk", "this key chooses {budget.epsilon}; leave either out"
    if budget.model is not None and budget.risk_of != "context":
        yield "budget.model", _needs("{budget.risk_of} context")
    for name, given in (("strategy", budget.strategy), ("average_words", budget.average_words)):
        if given is not None:
            yield (
                "budget.risk",
                f"this key is for the epsilon of a word, and {{budget.{name}}} multiplies epsilon; leave either out",
            )
    if budget.allocation == "dataset":
        yield (
            "budget.risk",
            (
                "this key is for the epsilon of a word, and {budget.allocation} dataset multiplies "
                "epsilon; leave either out"
            ),
        )
    if (presets.settled(settings).budget or budget).per != "token":
        yield "budget.risk", "this key is for the epsilon of a word; {budget.per} has to be token"


def _budget(settings: Settings) -> Iterator[tuple[str, str]]:
    budget = settings.budget
    if budget is None:
        return
    if budget.delta is None and budget.distance != 1:
        yield "budget.distance", _needs("{budget.delta}")
    multiplied = budget.strategy is not None or budget.allocation == "dataset"
    if multiplied and budget.average_words is None:
        by = "{budget.strategy}" if budget.strategy is not None else "{budget.allocation} dataset"
        yield "budget.average_words", f"{by} needs this key; add the words of an average text, from public knowledge"
    if not multiplied and budget.average_words is not None:
        yield "budget.average_words", _needs("{budget.strategy} or {budget.allocation} dataset")
    filled = presets.settled(settings).budget or budget
    if bool(filled.weights) != (filled.allocation == "position"):
        yield "budget.weights", "weights and {budget.allocation} position belong together; give both or neither"
    if filled.per != "document":
        if filled.allocation not in ("uniform", "dataset"):
            yield "budget.allocation", f"{filled.allocation} is for a budget per document; add {{budget.per}} document"
        if filled.field_weights is not None:
            yield "budget.field_weights", "weights share a document's budget; add {budget.per} document"


def _ledger(settings: Settings) -> Iterator[tuple[str, str]]:
    ledger = settings.ledger
    if ledger is None:
        return
    if ledger.cap_delta is not None and ledger.cap is None:
        yield "ledger.cap_delta", _needs("{ledger.cap}")
    for name in ("cap", "cap_token", "cap_ldp"):
        if getattr(ledger, name) is not None and not ledger.unit:
            yield (
                f"ledger.{name}",
                "a cap limits what a privacy unit spends; add {ledger.unit}: a column such as customer_id, or content",
            )
            break


def _text(settings: Settings) -> Iterator[tuple[str, str]]:
    from corpusveil.text.policy import TextPolicy

    text = presets.settled(settings).text
    if (text.tokenizer == "word") != (text.collocations is None):
        needs = "takes no" if text.tokenizer == "word" else "needs a"
        yield "text.collocations", f"{{text.tokenizer}} {text.tokenizer} {needs} collocation table"
    try:
        TextPolicy(**text.model_dump(exclude={"collocations"}))
    except UserError as error:
        yield "text", str(error).removesuffix(".")


def _length(settings: Settings) -> Iterator[tuple[str, str]]:
    length = settings.length
    if length.pad is not None and length.noise is not None:
        yield "length.noise", "{length.pad} and {length.noise} exclude each other; leave one of them out"
    if length.pad is None and length.growth != 1:
        yield "length.growth", _needs("{length.pad}")
    if length.noise is None and length.extra:
        yield "length.extra", _needs("{length.noise}")
    if length.chosen() is None or (settings.audit is not None and settings.output is None):
        return  # an audit checks lengths on texts of its own, of which nothing but words is left
    from corpusveil.text.policy import TextPolicy
    from corpusveil.transforms.kernel.lengths import refuse_unsound

    filled = presets.settled(settings)
    try:
        policy = TextPolicy(**filled.text.model_dump(exclude={"collocations"}))
        refuse_unsound(length.chosen(), policy, filled.value("budget.allocation"))
    except UserError as error:
        yield "length.pad" if length.pad is not None else "length.noise", str(error).removesuffix(".")


def _engine(settings: Settings) -> Iterator[tuple[str, str]]:
    """Refuse settings of other engines; each engine declares its own settings."""
    for name in settings.engine.chosen():
        if name not in registry.settings_of(settings.engine.name):
            owners = " or ".join(engine for engine in registry.names() if name in registry.settings_of(engine))
            yield f"engine.{name}", _needs(f"{{engine.name}} {owners}")


def _schedule(settings: Settings) -> Iterator[tuple[str, str]]:
    if re.fullmatch(r"[0-9]{1,9}[smhd]", settings.schedule.settle) is None:
        yield "schedule.settle", "give a number and one of s, m, h and d, such as 10m"


def _evaluate(settings: Settings) -> Iterator[tuple[str, str]]:
    asked = settings.evaluate
    if asked is None:
        return
    if asked.mechanisms and not asked.epsilons:
        yield "evaluate.mechanisms", _needs("{evaluate.epsilons}, at which other mechanisms are tried")
    if asked.second_private is not None and asked.second is None:
        yield "evaluate.second_private", _needs("{evaluate.second}, the column of second texts")
    if asked.encoder is not None and asked.vectors is not None:
        yield "evaluate.vectors", "similarity is measured by {evaluate.encoder} or by this; leave either out"
    columns = [name for name in (asked.label, asked.attribute, asked.second) if name is not None]
    if len(set(columns)) < len(columns):
        names = "{evaluate.label}, {evaluate.attribute} and {evaluate.second}"
        yield "evaluate", f"{names}: a column is named twice; give different columns"


def _audit(settings: Settings) -> Iterator[tuple[str, str]]:
    asked = settings.audit
    if asked is None:
        return
    if asked.documents and (asked.curve or asked.claim or asked.risks):
        others = "{audit.curve}, {audit.claim} and {audit.risks}"
        yield "audit.documents", f"this is for the guarantee of a single mechanism; leave {others} out"
    if asked.risks and not asked.curve:
        yield "audit.risks", _needs("{audit.curve}")
    if settings.length.chosen() is not None and settings.output is None and not asked.documents:
        yield "audit.documents", "lengths are checked on documents; add this key, or leave their policy out"


def incomplete(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what a file for whole flows lacks."""
    release = [section for section in OF_RELEASE if section in settings.model_fields_set]
    for section in NEEDED:
        if release and getattr(settings, section) is None:
            yield section, f"this section is missing; {{{release[0]}}} is for a release, which needs it"
    flow, space, model, denoise = settings.collocations, settings.space, settings.model, settings.denoise
    if model is not None and (model.counts or settings.value("collocations.counts")) is None:
        yield "model.counts", "a model is made from counts; add this key or {collocations.counts}"
    if denoise is not None:
        if (denoise.release or settings.value("output.path")) is None:
            yield "denoise.release", "there is nothing to denoise; add this key or the sections of a release"
        if (denoise.model or settings.value("model.path")) is None:
            yield "denoise.model", "a language model of public text is needed; add this key or {model}"
        if space is None:
            yield "space", "this section is missing; {denoise} needs the space of the release"
    if settings.audit is not None and space is None:
        yield "space", "this section is missing; {audit} needs the space of the mechanism"
    if settings.evaluate is not None and settings.evaluate.path is None:
        yield "evaluate.path", "this key is missing"
    if flow is not None:
        if not flow.input and settings.embeddings is None and None in (flow.counts, flow.table):
            yield "collocations.input", "this key is missing"
        if flow.input and flow.counts is None and flow.tokens is None:
            yield (
                "collocations.counts",
                "nothing is made from {collocations.input}; add this key or {collocations.tokens}",
            )
    elif not (release or model or denoise or settings.audit or settings.evaluate or (space and space.vectors)):
        yield "corpus", "there is nothing to do; add {collocations}, {space.vectors} or the sections of a release"
