"""The parameters of the Dataflow Flex Template, made of the options of ``privatize``, and what its launcher does."""

from __future__ import annotations

import inspect
import os
import re
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import UserError
from corpusveil.mechanisms import registry
from corpusveil.pipelines import runners
from corpusveil.pipelines.dataflow import IMAGE_VARIABLE, KEY_VARIABLE, RUNNER, job_options, read_key
from corpusveil.storage.formats import FORMATS
from corpusveil.transforms.profiles import PROFILES
from corpusveil.transforms.strategies import STRATEGIES

LEFT_OUT: Mapping[str, str] = {
    "key_environment": "the launcher reads the key from where the parameter key says, and hands it over in memory",
    "test_key": "the published key protects nothing, and a cloud job is no test",
    "engine": "it is beam",
    "runner": "it is DataflowRunner",
    "workers": "Dataflow adds and removes workers; num_workers and max_num_workers are options of the job",
    "master": "it is for Spark",
    "plan": "it makes no job; run 'corpusveil privatize --plan' anywhere",
    "plan_duplicates": "it makes no job; run it anywhere",
    "log": "it is a file of one machine; Dataflow keeps what workers log",
    "progress": "a launcher has no terminal; Dataflow's console shows the steps",
}
"""The options of ``privatize`` that are no parameters, and why."""

_WORD = "[A-Za-z0-9_]+(?:[ .:@+-][A-Za-z0-9_]+)*"
_SEGMENT = "[A-Za-z0-9_=@+-]+(?:[.][A-Za-z0-9_=@+-]+)*"
_GLOB = "[A-Za-z0-9_=@+*?-]+(?:[.][A-Za-z0-9_=@+*?-]+)*"
_BUCKET = "gs://[a-z0-9][a-z0-9_-]*(?:[.][a-z0-9_-]+)*"
_URL = f"{_BUCKET}(?:/{_SEGMENT})*/?"
_GLOB_URL = f"{_BUCKET}(?:/{_GLOB})*/?"
_SECRET = "projects/[a-z0-9-]+/secrets/[A-Za-z0-9_-]+/versions/(?:[0-9]+|latest)"  # noqa: S105 - where one lies
_PATTERNS = {bool: "(?:true|false)", float: "[0-9]{1,9}(?:[.][0-9]{1,9})?", int: "[1-9][0-9]{0,8}"}


def _several(one: str) -> str:
    return f"{one}(?:,{one})*"


def _one_of(names: Sequence[str]) -> str:
    return f"(?:{'|'.join(re.escape(name) for name in names)})"


def _patterns() -> dict[str, str]:
    """Return what a parameter of text may look like. No dots in a row, no control characters, nothing of a shell."""
    column, named = _WORD, f"{_WORD}:[0-9]{{1,6}}"
    return {
        "inputs": _several(_GLOB_URL),
        **dict.fromkeys(("space", "output", "records", "root", "collocations", "ledger"), _URL),
        **dict.fromkeys(("text", "id", "corpus"), column),
        "keep": _several(column),
        "key": f"(?:{_SECRET}|{_BUCKET}(?:/{_SEGMENT})+)",
        "mechanism": _one_of(registry.names()),
        "parameter": _several("[a-z_]{1,40}=-?[A-Za-z0-9_]{1,20}(?:[.][0-9]{1,9})?"),
        "profile": _one_of(list(PROFILES)),
        "strategy": _one_of(list(STRATEGIES)),
        "allocation": "[a-z]+(?:-[a-z]+)*",
        "weights": _several("(?:[0-9]{1,6}:)?[0-9]{1,6}"),
        "field_weights": _several(named),
        "only_release": "[0-9a-f]{16}-[0-9a-f]{16}",
        "format": _one_of(FORMATS),
    }


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the template and the option that it stands for; an empty option is an argument."""

    name: str
    option: str
    pattern: str
    help: str
    optional: bool
    several: bool
    flag: bool

    def words(self, value: str) -> list[str]:
        """Return the words of a command line. Raises UserError for a value that the pattern does not allow."""
        if not re.fullmatch(self.pattern, value):
            raise UserError(f"Parameter {self.name}: this value is not allowed; it has to match {self.pattern}")
        if self.flag:
            return [self.option] if value == "true" else []
        values = value.split(",") if self.several else [value]
        return [word for one in values for word in ((f"{self.option}={one}",) if self.option else (one,))]

    def described(self) -> dict[str, Any]:
        """Return the parameter as metadata.json has it."""
        label = re.sub("([A-Z])", r" \1", self.name).lower()
        return {
            "name": self.name,
            "label": label[:1].upper() + label[1:],
            "helpText": self.help,
            "isOptional": self.optional,
            "regexes": [f"^{self.pattern}$"],
        }


def options() -> dict[str, tuple[Any, Any, bool]]:
    """Return the options and arguments of ``privatize``: of each the type, what Typer is told, whether it is needed."""
    from corpusveil.cli.privatize import privatize

    hints = typing.get_type_hints(privatize, include_extras=True)
    found = {}
    for name, declared in inspect.signature(privatize).parameters.items():
        if name != "context":
            kind, told = typing.get_args(hints[name])[:2]
            found[name] = kind, told, declared.default is inspect.Parameter.empty
    return found


def parameters() -> list[Parameter]:
    """Return every parameter. Raises KeyError for an option whose form nobody has said."""
    patterns = _patterns()
    return [_parameter(name, *option, patterns) for name, option in options().items() if name not in LEFT_OUT]


def _parameter(name: str, kind: Any, told: Any, needed: bool, patterns: Mapping[str, str]) -> Parameter:
    kinds = [one for one in typing.get_args(kind) if one is not type(None)] if _is_union(kind) else [kind]
    (kind,) = kinds
    several = typing.get_origin(kind) is list
    if typing.get_origin(kind) is typing.Literal:
        pattern = _one_of(typing.get_args(kind))
    else:
        pattern = _PATTERNS.get(kind) or patterns[name]
    helped = {
        "inputs": "Files, folders or globs at Cloud Storage.",
        "key": "Where the key lies, never the key: a version of a secret, or a file that only the launcher may read.",
    }.get(name, str(told.help))
    camel = re.sub("_([a-z])", lambda found: found[1].upper(), {"inputs": "input"}.get(name, name))
    option = "" if name == "inputs" else f"--{name.replace('_', '-')}"
    helped += " Several are parted by commas." if several else ""
    return Parameter(camel, option, pattern, helped, not (needed or name == "key"), several, kind is bool)


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def metadata() -> dict[str, Any]:
    """Return what metadata.json says of the template."""
    return {
        "name": "corpusveil privatize",
        "description": "Privatizes a text corpus with word-level metric differential privacy: shards in, private "
        "shards and a manifest out.",
        "streaming": False,
        "parameters": [one.described() for one in parameters()],
    }


def command_line(given: Sequence[str]) -> tuple[list[str], list[str], str]:
    """Part what the launcher is given into a ``privatize``, options for Beam, and where the key lies.

    Raises UserError for a parameter that is missing, comes twice or has a value that is not allowed.
    """
    known = {one.name: one for one in parameters()}
    values: dict[str, str] = {}
    beam: list[str] = []
    words = list(given)
    while words:
        word = words.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in known:
            beam.append(word)
            continue
        if name in values:
            raise UserError(f"Parameter {name}: it is given twice; leave one out.")
        if not equals and not words:
            raise UserError(f"Parameter {name}: its value is missing.")
        values[name] = value if equals else words.pop(0)
    for one in known.values():
        if not one.optional and one.name not in values:
            raise UserError(f"Parameter {one.name} is missing.")
    key = values["key"]
    known["key"].words(key)
    own = [word for name, value in values.items() if name != "key" for word in known[name].words(value)]
    return ["privatize", *own], [word for word in beam if not word.startswith("--runner")], key


def launch(given: Sequence[str]) -> int:
    """Do what the template's launcher is there for; return the exit status."""
    from corpusveil.cli.main import run

    try:
        own, beam, location = command_line(given)
        beam, unknown = runners.parted(RUNNER, job_options(_image(), beam))
        os.environ[KEY_VARIABLE] = read_key(location)
    except UserError as error:
        print(f"corpusveil: {error}", file=sys.stderr)
        return error.exit_status
    for word in unknown:
        print(f"corpusveil: {word.partition('=')[0]}: Beam has no such option; it is left out.", file=sys.stderr)
    engine = ["--key-environment", KEY_VARIABLE, "--engine", "beam", "--runner", RUNNER, "--progress", "none"]
    return run([*own, *engine, "--", *beam])


def _image() -> str:
    image = os.environ.get(IMAGE_VARIABLE)
    if not image:
        raise UserError(f"{IMAGE_VARIABLE} is not set; 'corpusveil package dataflow' writes it into the Dockerfile.")
    return image
