"""The settings of releases: sections of a configuration file, whose keys are the options of the command line as well.

A new setting is one field here. Its key, its place in the schema and its row in ``docs/settings.md`` follow from it,
and so does its option in commands that have the whole section (``pipelines.flows``). Other packages add sections
(``pipelines.fields``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, model_validator

from corpusveil.choices import (
    Allocation,
    Duplicates,
    Group,
    Hyphens,
    Markup,
    OnBadRows,
    OverCap,
    Policy,
    Separator,
)
from corpusveil.errors import SettingError, UserError
from corpusveil.pipelines.fields import Section, fault, key
from corpusveil.pipelines.settings.artifact_sections import TokenizerName

if TYPE_CHECKING:
    from corpusveil.storage.engine import Engine
    from corpusveil.text.policy import TextPolicy
    from corpusveil.text.spans import SpanPolicy


# A table: two or three lines a setting.
# fmt: off
class CorpusSettings(Section):
    """The private corpus."""

    GROUP: ClassVar[Group] = "What to release"

    input: list[str] = key(
        "Files, folders or quoted globs, at any fsspec URL.", path=True, metavar="INPUT...", min_length=1,
        start=["reviews.parquet"])
    text: str = key(
        "The column with the text.", "text", often=True, metavar="COLUMN", start="text")
    id: str | None = key("The column that identifies a document.", None, often=True, metavar="COLUMN", start="id")
    keep: list[str] = key(
        'A column to copy to the output in the clear (repeatable); all or *: every column but the text. A column '
        'called all is written in double quotes, "all".', [], metavar="COLUMN")
    separator: Separator = key(
        "The separator of CSV cells, in the input and in the output.", "comma", group="Rarely used")
    root: str | None = key(
        "Without an id: the folder at which the paths in document identities start. Default: the common folder.", None,
        path=True, metavar="URL", group="Rarely used")
    name: str | None = key(
        "The name of the corpus, in document identities without an id, and in a ledger. Default: the name of its "
        "folder. In a ledger it is a name space, for values of {ledger.unit} that are unique in this corpus only.",
        None, metavar="NAME", group="Rarely used")


class MechanismSettings(Section):
    """The mechanism; its parameters are written beside its name."""

    model_config = ConfigDict(extra="allow")
    GROUP: ClassVar[Group] = "How private"

    name: str = key("The mechanism; 'corpusveil mechanisms' compares all.", metavar="NAME", start="ring-geometric")

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    @model_validator(mode="after")
    def _of_a_mechanism(self) -> Self:
        from corpusveil.mechanisms import registry

        place = "mechanism.name"
        try:
            registry.find(self.name)
            for name, value in self.parameters.items():
                place = f"mechanism.{name}"
                registry.check(self.name, [name])
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    raise fault(place, "give a number", SettingError)
        except UserError as error:
            raise fault(place, str(error).removesuffix("."), type(error)) from None
        return self


class BudgetSettings(Section):
    """How much a reader may learn."""

    GROUP: ClassVar[Group] = "How private"

    epsilon: float | None = key("The budget, above 0, if {budget.risk} is not to choose it.", None, gt=0, often=True)
    risk: float | None = key(
        "The share of content words that a reader may recover: 0.3 is most private, 0.7 most readable. Instead of "
        "{budget.epsilon}: the space has a table of what readers recovered of public text; above 0 and below 1, for a "
        "budget per token. 0.5 is balanced.",
        None, gt=0, lt=1, often=True, start=0.5)
    per: Literal["token", "document", "paragraph", "sentence"] = key(
        "Whether epsilon is for each token or the whole document. With {store.path}: for the whole document (default), "
        "or for each paragraph or sentence.", "token")
    allocation: Allocation = key("How a document's budget is divided among its words.", "uniform", group="Rarely used")
    strategy: str | None = key(
        "A strategy of the collocation study. It sets {budget.per}, {budget.allocation}, {text.tokenizer} and, for "
        "s1, {text.stop_words}.", None, metavar="NAME", choices="corpusveil.choices:STRATEGIES", group="Rarely used")


class TextSettings(Section):
    """How text is split, and the treatment of tokens that no mechanism replaces."""

    GROUP: ClassVar[Group] = "Text"

    tokenizer: TokenizerName = key("Single words, or how words are joined into collocations.", "word")
    collocations: str | None = key(
        "The collocation table: what 'score' wrote, or the name of an installed one, such as 'en'. Required for any "
        "tokenizer but word.", None, path=True, metavar="URL", named=True)
    unknown_words: Policy = key(
        "Unknown words: privatize, resample, mask, drop or keep. They are not in the vocabulary.", "resample",
        metavar="HOW")
    stop_words: Policy = key("Same for function words.", "privatize", metavar="HOW")
    numbers: Policy = key("Same for numbers.", "resample", metavar="HOW")
    contacts: Policy = key("Same for URLs, e-mail, handles.", "mask", metavar="HOW")
    punctuation: Policy = key("Same for punctuation.", "keep", metavar="HOW")
    other: Policy = key("Same for symbols and emoji. Also for control characters.", "drop", metavar="HOW")
    layout: Literal["normalize", "keep"] = key("White space.", "normalize")
    case: Literal["lower", "restore"] = key(
        "Lower case, or restore the capitals of the input (which discloses them).", "lower", start="restore")
    hyphens: Hyphens = key(
        "Whether a hyphen between letters splits words or joins them. Choose as for the text that the space was made "
        "from.", "split", group="Rarely used")
    markup: Markup = key(
        "HTML: read tags as words, or strip them. words reads tags like any text, strip reads and "
        "writes only the text.", "words", start="strip")
    language: str | None = key(
        "The language, as a code or English name: de, German. Default: that of the space, if recorded.", None,
        metavar="LANGUAGE")

    def policy(self) -> TextPolicy:
        """Return the policy. Raises UserError for treatments that exclude each other."""
        from corpusveil.text.policy import TextPolicy

        return TextPolicy(**self.model_dump(exclude={"collocations"}))


class SpansSettings(Section):
    """Names, numbers and other places in texts that are treated by their kind, instead of word by word."""

    GROUP: ClassVar[Group] = "Names and other spans"

    find: list[str] = key(
        "What finds spans: rules (phones, cards), names, presidio, MODULE:FUNCTION, terms:FILE. rules use "
        "checksums; names are capitalized rare words; a file has one term per line. Repeatable.", [], metavar="NAME",
        start=["rules", "names"])
    treat: list[str] = key(
        "How spans of a kind are written: mask or resample. other is every kind that is not named. Default: mask. "
        "Repeatable.", [], metavar="KIND=HOW")

    def policy(self) -> SpanPolicy | None:
        """Return the policy, None if nothing finds spans. Raises UserError for an unknown kind or treatment."""
        if not self.find:
            return None
        from corpusveil.text.spans import SpanPolicy

        pairs = [(kind, how) for kind, _, how in (pair.partition("=") for pair in self.treat)]
        return SpanPolicy(find=self.find, treat=pairs)


class KeySettings(Section):
    """The secret key. Without this section, a key is made and named."""

    GROUP: ClassVar[Group] = "How private"

    path: str | None = key(
        "The key file. Default: a key is made for this output.", None, path=True, metavar="PATH", often=True,
        start="release.key")
    environment: str | None = key("The environment variable that holds the key.", None, metavar="NAME")
    test: bool = key("Use the published key: NOT PRIVATE.", default=False, group="Rarely used")


class LedgerSettings(Section):
    """The spending of privacy units, and its limits."""

    GROUP: ClassVar[Group] = "Ledger"

    path: str | None = key("The URL of the budget ledger (confidential).", None, path=True, metavar="URL")
    unit: list[str] = key(
        "The privacy unit of {ledger.cap}: a column of strings or whole numbers, such as customer_id, or 'content' for "
        "the text itself. An edited text is another unit. NAME=COLUMN if the ledger's unit has another name. "
        "Repeatable: the cap holds for each.", [], metavar="COLUMN")
    cap: float | None = key(
        "The most that a unit may spend, in nats of plain LDP, over all documents and releases in this ledger.", None,
        gt=0, metavar="NATS")
    over_cap: OverCap = key(
        "What becomes of units that would exceed {ledger.cap}: refuse the run, which names them in a private file, or "
        "drop their documents. That a document is missing then discloses it.", "refuse", metavar="HOW")


class EngineSettings(Section):
    """The engine that runs the work; the output is the same for all."""

    GROUP: ClassVar[Group] = "Engine"

    name: str = key(
        "The engine, such as spark or beam; all write the same output.", "local", often=True,
        choices="corpusveil.storage.engine:ENGINES.names")
    workers: int | None = key("The number of processes. Default: 1 (local), all cores (Spark).", None, ge=1)
    master: str | None = key("The Spark master.", None, metavar="URL")
    runner: str | None = key("The Beam runner. Default: FnApiRunner.", None, metavar="NAME")
    options: list[str] = key("Options of the Beam runner.", [])

    def make(self) -> Engine:
        """Return the engine, ready to run."""
        from corpusveil.storage.engine import make_engine

        return make_engine(self.name, **self.chosen())

    def chosen(self) -> dict[str, Any]:
        """Return the settings of the engine that have a value, by name."""
        given = {name: getattr(self, name) for name in type(self).model_fields if name != "name"}
        return {name: value for name, value in given.items() if value}


class OutputSettings(Section):
    """The place of a release, and how it is written."""

    GROUP: ClassVar[Group] = "Files"

    path: str = key("The release: a new folder or URL.", path=True, metavar="URL", start="private")
    format: str = key(
        "The format of the output, such as parquet, jsonl.zst or csv; same: that of the input.", "same",
        choices="corpusveil.storage.formats:FORMATS", metavar="FORM")
    records: str | None = key("The private records. Default: <output>.records.", None, path=True, metavar="URL")
    on_bad_rows: OnBadRows = key("Unreadable rows: refuse the input, or drop and count them.", "refuse", metavar="HOW")
    duplicates: Duplicates = key(
        "Equal texts with different ids: independent, same-noise, or drop all but the first. Noise is independent, or "
        "the same for all.", "independent", group="How private", metavar="HOW")
    accept_no_guarantee: bool = key("Accept a mechanism that has no guarantee.", default=False, group="Rarely used")
    rows_per_task: int | None = key(
        "Split larger shards into tasks of this many rows, a multiple of 8192.", None, ge=1, group="Rarely used")


class ScheduleSettings(Section):
    """Settings that only 'corpusveil schedule' reads."""

    settle: str = key(
        "Shards that were written more recently wait for a later start: seconds, minutes, hours or days, such as 10m. "
        "By the time that the store gives; for shards that are written in place.", "0s")
    left_out: Literal["fail", "warn"] = key(
        "What a start does while files are left out that cannot be used: it fails, with status 2, or only names them.",
        "fail")
    changed: Literal["release", "refuse"] = key(
        "What a start does with a shard that has changed since its release: a further release, or it is left out.",
        "release")
    metrics: str | None = key(
        "Write the numbers of the last start to this file of its own, NAME.prom in the folder of a textfile collector, "
        "for Prometheus. All users can read it.", None, path=True)

    def settle_seconds(self) -> int:
        """Return ``settle`` in seconds."""
        return int(self.settle[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[self.settle[-1]]
