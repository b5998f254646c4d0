"""The flows: each is a command whose options are settings, and a step of a configuration file.

The settings know no commands: a command says which of them it has. Its ``options`` name, line by line, a section and
its keys; ``*`` are all that the line does not name. ``key=name`` has another name on the command line, ``key=`` is an
argument, ``key=--`` the text after two dashes, and a command cannot do without ``key!``.
"""

# Listings and help import this module, so it imports nothing that they do not show.

from __future__ import annotations

import dataclasses
import functools
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpusveil.registry import Registry

if TYPE_CHECKING:
    from corpusveil.pipelines.fields import Setting
    from corpusveil.pipelines.settings import Settings
    from corpusveil.pipelines.watch import Watch


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow: the name and help of its command, and its place in a run.

    ``help`` is that of the command, unless a file of ``cli`` gives it further options; listings have its first line.
    ``function`` is a
    ``module:name``, and ``options`` are the settings of the command. A file requests the flow if it has all settings
    of ``wanted``; `` or `` separates alternatives.
    """

    name: str
    help: str
    function: str
    options: str
    wanted: tuple[str, ...]
    artifact: str | None = None
    """The setting that names the artifact that it makes."""
    call: str | None = None
    """The function that returns a digest of all that decides the artifact, if the artifact does not record that."""
    command: str | None = None
    """Its command, if that has another name."""

    def is_wanted(self, settings: Settings) -> bool:
        """Say whether settings request it."""
        return all(any(settings.value(place) for place in places.split(" or ")) for places in self.wanted)

    def do(self, settings: Settings, watch: Watch) -> Any:
        """Run it; its module is imported now."""
        return pkgutil.resolve_name(self.function)(settings, watch)


# A table: a flow's name, its help, and its place in a run.
# fmt: off
FLOWS = (
    Flow(
        "count", """Count the n-grams of a corpus.

        They are lower-cased and do not cross sentences. Counts are exact, memory is bounded, and a killed run resumes.

        Example: corpusveil count 'c4/*.json.gz' --output counts/c4 --engine spark
        """,
        "corpusveil.pipelines.artifacts:count", """
        collocations: input!= text counts!=output max_n min_count hyphens language
        engine: name=engine workers master""",
        wanted=("collocations.input", "collocations.counts"),
        artifact="collocations.counts"),
    Flow(
        "score", """Find the collocations among counted n-grams.

        N-grams are scored by how much more often than by chance their words are adjacent.

        Example: corpusveil score --counts counts/c4 --output collocations/c4 --min-count 20
        """,
        "corpusveil.pipelines.artifacts:score", """
        collocations: counts! table!=output measure threshold score_min_count=min_count connectors connectors_rule
        engine: name=engine workers master""",
        wanted=("collocations.counts", "collocations.table"),
        artifact="collocations.table"),
    Flow(
        "tokenize", """Split a corpus into words or collocations.

        It writes tokens for 'corpusveil train': Parquet, and text with one sentence per line.

        Example: corpusveil tokenize 'c4/*.json.gz' --tokenizer gst --collocations collocations/c4 --output tokens/c4
        """,
        "corpusveil.pipelines.artifacts:tokenize", """
        collocations: input!= text table=collocations tokens!=output hyphens language tokenizer
        engine: name=engine workers master""",
        wanted=("collocations.input", "collocations.tokens"),
        artifact="collocations.tokens"),
    Flow(
        "train", """Train word vectors on a tokenized corpus.

        It runs word2vec, deterministic with one thread. A killed run starts again from the first epoch.

        Example: corpusveil train --tokens tokens/c4-gst --output vectors/c4-gst --threads 6
        """,
        "corpusveil.pipelines.artifacts:train", """
        collocations: tokens!
        embeddings: * vectors!=output
        engine: name=engine master""",
        wanted=("embeddings.vectors",), artifact="embeddings.vectors"),
    Flow(
        "space", """Build a space from word vectors.

        A space is vocabulary, vectors and one-dimensional lists, hashed and frozen.

        Example: corpusveil space --vectors vectors.txt.gz --output spaces/glove
        """,
        "corpusveil.pipelines.artifacts:space", """
        space: * path!=output vectors!""",
        wanted=("space.path", "space.vectors or embeddings.vectors"),
        artifact="space.path", call="corpusveil.pipelines.artifacts:call_of_space"),
    Flow(
        "store", """Make a store of public passages.

        A release replaces each text by one of these passages, unchanged. Name only texts that anybody may read.

        Example: corpusveil store 'c4/*.json.gz' --space en --licence 'ODC-BY 1.0' --output stores/c4
        """,
        "corpusveil.pipelines.artifacts:store", """
        space: path!=space
        store: path!=output input!= text licence! attribution words size salt exclude refuse encoder
        engine: name=engine workers master""",
        wanted=("store.path", "store.input"), artifact="store.path"),
    Flow("privatize", "Privatize a corpus.", "corpusveil.pipelines.privatize:run", """
        space: path=space
        store: path=store encoder neighbors most_pieces accept_overlap mark_source
        corpus: * input!= name=corpus
        mechanism: name=mechanism
        budget: *
        text: *
        spans: * find=spans
        key: path=key environment=key_environment test=test_key
        ledger: * path=ledger
        engine: * name=engine options=--
        output: * path!=output""",
        wanted=("output.path",)),
)
# fmt: on
"""The flows of this package, in the order of a run."""
PREVIEW = """
    space: path=space
    store: path=store encoder
    corpus: input!= text id separator name=corpus
    mechanism: name=mechanism
    budget: risk
    text: *
    spans: * find=spans
    key: path=key
"""
"""The options of ``preview``, which is no step of a file."""
ADDED: Registry[Flow] = Registry("flow")
"""The flows of other packages, which come last in a run."""


def flows() -> tuple[Flow, ...]:
    """Return all flows, in the order of a run."""
    return (*FLOWS, *map(ADDED.find, ADDED.names()))


@functools.cache
def commands() -> Mapping[str, str]:
    """Return the options of each command that has settings."""
    return {"preview": PREVIEW} | {flow.command or flow.name: flow.options for flow in flows()}


@functools.cache
def options_of(command: str, *, in_files: bool = False) -> Mapping[str, Setting]:
    """Return the settings that a command has, by the names of its parameters, in the order of the settings.

    ``in_files``: with those that only files and Python have.
    """
    from corpusveil.pipelines.fields import declared
    from corpusveil.pipelines.settings import Settings

    given = dict(_options(commands()[command]))
    options = {}
    for setting in declared(Settings):
        name, is_needed = given.get(setting.setting) or given.get(f"{setting.name}.*") or (None, False)
        if name is not None and (in_files or not setting.in_file):
            own = name.replace("*", setting.key)
            options[own or setting.key] = dataclasses.replace(setting, is_argument=not own, is_needed=is_needed)
    return options


def _options(lines: str) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Yield each setting of a command with its name there, and whether the command needs it."""
    for line in lines.split("\n"):
        section, _, keys = line.partition(":")
        for option in keys.split():
            key, equals, name = option.partition("=")
            own = key.removesuffix("!")
            yield f"{section.strip()}.{own}", (name if equals else own, key.endswith("!"))
