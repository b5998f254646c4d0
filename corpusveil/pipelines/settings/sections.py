"""The settings of releases: sections of a configuration file, whose keys are the options of the command line as well.

A new setting is one field here. Its key, its place in the schema and its row in ``docs/settings.md`` follow from it,
and so does its option in commands that have the whole section (``pipelines.flows``). Other packages add sections
(``pipelines.fields``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, model_validator

from corpusveil.choices import Allocation, Duplicates, Group, Hyphens, Markup, OnBadRows, OverCap, Policy, Separator
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
        "The private corpus: files, folders or quoted globs, at any fsspec URL.", path=True, metavar="INPUT...",
        min_length=1, start=["reviews.parquet"])
    text: str = key("The column that holds the text.", "text", often=True, metavar="COLUMN", start="text")
    id: str | None = key(
        "The column that identifies a document. Default: its path and row number.", None, often=True, metavar="COLUMN",
        start="id")
    keep: list[str] = key(
        "A column to copy to the output unchanged, in the clear. Repeatable.", [], metavar="COLUMN")
    separator: Separator = key(
        "The character between CSV cells, in the input and in the output.", "comma", group="Rarely used")
    root: str | None = key(
        "The folder from which paths that identify documents are counted. Only without {corpus.id}. Default: the "
        "common folder of all files.", None, path=True, in_file=True)
    name: str | None = key(
        "The name of the corpus. It is part of the identity of a document without {corpus.id}, and of each unit in a "
        "ledger: set it if a unit's value is unique in this corpus only. Default: the name of its folder.",
        None, metavar="NAME", group="Rarely used")


class MechanismSettings(Section):
    """The mechanism, and its parameters by name."""

    model_config = ConfigDict(extra="allow")
    GROUP: ClassVar[Group] = "How private"

    name: str = key(
        "The mechanism that replaces words. 'corpusveil mechanisms' compares all.", metavar="NAME",
        start="ring-geometric")

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

    epsilon: float | None = key(
        "The privacy budget of each unit of text ({budget.per}), above 0. Give this or {budget.risk}.", None, gt=0,
        often=True)
    risk: float | None = key(
        "The share of content words that a reader may recover, as measured on public text. It chooses the epsilon of "
        "each token. Above 0 and below 1: 0.3 is more private, 0.7 keeps more words.", None, gt=0, lt=1, often=True,
        start=0.5)
    per: Literal["token", "document", "paragraph", "sentence"] = key(
        "The unit of text that epsilon is spent on: token or document. With {store.path}: document (the default "
        "there), paragraph or sentence.", "token")
    allocation: Allocation = key(
        "How the budget of a document is divided: equally among the tokens that are replaced (uniform), or among all "
        "its words (word-share).", "uniform", in_file=True)
    strategy: str | None = key(
        "A strategy of the collocation study: sets {budget.per}, {budget.allocation} and {text.tokenizer}.", None,
        choices="corpusveil.choices:STRATEGIES", in_file=True)


class TextSettings(Section):
    """How text is split, and the treatment of tokens that no mechanism replaces."""

    GROUP: ClassVar[Group] = "Text"

    tokenizer: TokenizerName = key(
        "How text becomes tokens: single words (word), or words joined into collocations (gst, mst).", "word")
    collocations: str | None = key(
        "The collocation table: a folder or URL that 'score' wrote, or the name of an installed table, such as en. gst "
        "and mst need it.", None, path=True, metavar="URL", named=True)
    unknown_words: Policy = key(
        "What to do with words that the space does not know: resample, mask, drop or keep.", "resample", metavar="HOW")
    stop_words: Policy = key(
        "What to do with function words: privatize, resample, mask, drop or keep.", "privatize", metavar="HOW")
    numbers: Policy = key("What to do with numbers: resample, mask, drop or keep.", "resample", metavar="HOW")
    contacts: Policy = key(
        "What to do with URLs, e-mail addresses and handles: resample, mask, drop or keep.", "mask", metavar="HOW")
    punctuation: Policy = key("What to do with punctuation: resample, mask, drop or keep.", "keep", metavar="HOW")
    other: Policy = key(
        "What to do with symbols, emoji and control characters: resample, mask, drop or keep.", "drop", metavar="HOW")
    layout: Literal["normalize", "keep"] = key(
        "White space: single spaces (normalize), or the line breaks and spaces of the input (keep).", "normalize")
    case: Literal["lower", "restore"] = key(
        "Capitals: write lower case (lower), or restore and disclose those of the input (restore).", "lower",
        start="restore")
    hyphens: Hyphens = key(
        "Read long-term as two words (split) or one (join). Choose as for the text that the space was made from.",
        "split", in_file=True)
    markup: Markup = key(
        "HTML: read tags as text (words), or read and write only the text between them (strip).", "words",
        start="strip")
    language: str | None = key(
        "The language of the text, as a code or English name: de, German. Default: the language of the space.", None,
        metavar="LANGUAGE")

    def policy(self) -> TextPolicy:
        """Return the policy. Raises UserError for treatments that exclude each other."""
        from corpusveil.text.policy import TextPolicy

        return TextPolicy(**self.model_dump(exclude={"collocations"}))


class SpansSettings(Section):
    """Names, numbers and other places in texts that are treated by their kind, instead of word by word."""

    GROUP: ClassVar[Group] = "Names and other spans"

    find: list[str] = key(
        "The recognizers of spans: rules, names, presidio, terms:FILE or MODULE:FUNCTION. A span is treated as a "
        "whole. Rules find phone, card and other numbers; the recognizer of names finds capitalized rare words; a file "
        "of terms has one per line. Repeatable.", [], metavar="NAME", start=["rules", "names"])
    treat: list[str] = key(
        "How spans of a kind are written: mask or resample, as in phone=resample; other means every kind not given "
        "here. Default: mask. Repeatable.", [], metavar="KIND=HOW")

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
        "The file with the secret key. Default: a new key, which belongs to this output ('corpusveil key list'); "
        "'preview' throws it away.", None, path=True, metavar="PATH", often=True, start="release.key")
    environment: str | None = key("The environment variable that holds the secret key.", None, metavar="NAME")
    test: bool = key("Use the published test key: the output is NOT PRIVATE.", default=False, group="Rarely used")


class LedgerSettings(Section):
    """The spending of privacy units, and its limits."""

    GROUP: ClassVar[Group] = "Ledger"

    path: str | None = key(
        "The folder or URL of the ledger of spending. It is as confidential as the input.", None, path=True,
        metavar="URL")
    unit: list[str] = key(
        "The column that identifies the privacy unit of {ledger.cap}, such as customer_id. With content, each "
        "different text is a unit. Write NAME=COLUMN if the ledger names the unit NAME. Repeatable: the cap holds for "
        "each.", [], metavar="COLUMN")
    cap: float | None = key(
        "The most that a privacy unit may spend over all documents and releases in this ledger, in nats of plain LDP.",
        None, gt=0, metavar="NATS")
    over_cap: OverCap = key(
        "What to do if units would exceed {ledger.cap}: refuse the run and name them in a private file, or drop their "
        "documents, which discloses that they are missing.", "refuse", metavar="HOW")


class EngineSettings(Section):
    """The engine that runs the work; the output is the same for all."""

    GROUP: ClassVar[Group] = "Engine"

    name: str = key(
        "The engine that runs the work. All write the same output.", "local", often=True,
        choices="corpusveil.storage.engine:ENGINES.names")
    workers: int | None = key("The number of processes. Default: 1 on local, all cores on spark.", None, ge=1)
    master: str | None = key(
        "The Spark master, such as local[4] or yarn. Default: the master of spark-submit, otherwise this machine.",
        None, metavar="URL")
    runner: str | None = key("The Beam runner. Default: FnApiRunner.", None, metavar="NAME")
    options: list[str] = key("An option of the Beam runner, such as --region=europe-west1. Repeatable.", [])

    def engine(self) -> Engine:
        """Return the engine, ready to run. Raises UserError if it cannot."""
        from corpusveil.storage.engine import ENGINES

        given = {name: tuple(value) if isinstance(value, list) else value for name, value in self.chosen().items()}
        made = ENGINES.find(self.name)(**given)
        if hasattr(made, "check"):
            made.check()
        return made

    def chosen(self) -> dict[str, Any]:
        """Return the settings of the engine that have a value, by name."""
        given = {name: getattr(self, name) for name in type(self).model_fields if name != "name"}
        return {name: value for name, value in given.items() if value}


class OutputSettings(Section):
    """The place of a release, and how it is written."""

    GROUP: ClassVar[Group] = "Files"

    path: str = key("The release: a new folder or URL.", path=True, metavar="URL", start="private")
    format: str = key(
        "The format of the output; same: the format of the input.", "same",
        choices="corpusveil.storage.formats:FORMATS", metavar="FORM")
    records: str | None = key(
        "The folder or URL of the private records. Default: <output>.records.", None, path=True, metavar="URL")
    on_bad_rows: OnBadRows = key(
        "What to do with rows that cannot be read: refuse the input, or drop and count them.", "refuse", metavar="HOW")
    duplicates: Duplicates = key(
        "What to do with equal texts under different ids: draw noise for each (independent) or the same noise for all "
        "(same-noise).", "independent", group="How private", metavar="HOW")
    accept_no_guarantee: bool = key(
        "Release with a mechanism that has no privacy guarantee.", default=False, group="Rarely used")
    rows_per_task: int | None = key(
        "Split larger shards into tasks of this many rows, a multiple of 8192. Default: by number of workers.", None,
        ge=1, group="Rarely used")


class ScheduleSettings(Section):
    """Settings that only 'corpusveil schedule' reads."""

    settle: str = key(
        "Leave shards that changed within this time to a later start: seconds, minutes, hours or days, such as 10m. "
        "For shards that other programs write in place.", "0s", pattern="^[0-9]{1,6}[smhd]$",
        metavar="10s, 10m, 10h or 10d")
    left_out: Literal["fail", "warn"] = key(
        "What to do about files that cannot be used: release the others and fail with status 2, or only name them.",
        "fail")
    changed: Literal["release", "refuse"] = key(
        "What to do with a shard that changed after its release: release it again, or leave it out.", "release")
    metrics: str | None = key(
        "Write the figures of the last start to this file for Prometheus: NAME.prom in the folder of a textfile "
        "collector. All users can read it.", None, path=True, pattern=r"\.prom$", metavar="NAME.prom")

    def settle_seconds(self) -> int:
        """Return ``settle`` in seconds."""
        return int(self.settle[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[self.settle[-1]]
