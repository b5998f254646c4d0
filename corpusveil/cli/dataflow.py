"""The parameters of the Dataflow Flex Template, made from the settings of ``privatize``, and its launcher."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from corpusveil.cli.derived import options_of, settings_of
from corpusveil.deployment.template import IMAGE_VARIABLE, KEY_VARIABLE
from corpusveil.errors import BadValueError, ConflictError, UnsetError
from corpusveil.jobs.beam import DATAFLOW, split_options
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.fields import Setting
from corpusveil.pipelines.settings.sections import WORD
from corpusveil.sampling.keys import read_key

LEFT_OUT: Mapping[str, str] = {
    "key.environment": "the launcher reads the key from the place that the parameter key names, and sends it in memory",
    "key.test": "the published key protects nothing, and a cloud job is not a test",
    "spans.key": "the key of pseudonyms would be a file on the launcher; use a driver for these",
    "engine.name": "it is dataflow",
    "engine.runner": "it is DataflowRunner",
    "engine.options": "these are options of the job, which the launcher receives beside the parameters",
    "engine.workers": "Dataflow adds and removes workers; num_workers and max_num_workers are options of the job",
    "engine.master": "it is for Spark",
    "output.log": "this file is on one machine; Dataflow keeps the logs of the workers",
}
"""The settings of ``privatize`` that are not parameters, and why."""

_SEGMENT = "[A-Za-z0-9_=@+-]+(?:[.][A-Za-z0-9_=@+-]+)*"
_GLOB = "[A-Za-z0-9_=@+*?-]+(?:[.][A-Za-z0-9_=@+*?-]+)*"
_BUCKET = "gs://[a-z0-9][a-z0-9_-]*(?:[.][a-z0-9_-]+)*"
_URL = f"{_BUCKET}(?:/{_SEGMENT})*/?"
_GLOB_URL = f"{_BUCKET}(?:/{_GLOB})*/?"
_SECRET = "projects/[a-z0-9-]+/secrets/[A-Za-z0-9_-]+/versions/(?:[0-9]+|latest)"  # noqa: S105 - where one lies
_KEY = f"(?:{_SECRET}|{_BUCKET}(?:/{_SEGMENT})+)"
_PARAMETER = "[a-z_]{1,40}=-?[A-Za-z0-9_]{1,20}(?:[.][0-9]{1,9})?"
_PATTERNS = {bool: "(?:true|false)", float: "[0-9]{1,9}(?:[.][0-9]{1,9})?", int: "[1-9][0-9]{0,8}"}


def _several(pattern: str) -> str:
    return f"{pattern}(?:,{pattern})*"


def _pattern(setting: Setting) -> str:
    """Return the pattern of a parameter: no consecutive dots, no control characters, no shell syntax."""
    if setting.values:
        return f"(?:{'|'.join(re.escape(value) for value in setting.values)})"
    if setting.place == "key.path":
        return _KEY
    if setting.path:
        return _several(_GLOB_URL) if setting.kind == list[str] else _URL
    plain = _PATTERNS.get(setting.kind) or setting.form or WORD
    return _several(plain) if setting.kind == list[str] else plain


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the template, and its option."""

    name: str
    option: str
    kind: Any
    pattern: str
    help: str
    optional: bool

    def value(self, given: str) -> Any:
        """Return a given text as a value of the setting. Raises UserError if the pattern does not allow it."""
        if not re.fullmatch(self.pattern, given):
            raise BadValueError(f"Parameter {self.name}: this value does not match {self.pattern}; correct it.")
        if self.kind is bool:
            return given == "true"
        if get_origin(self.kind) is list:
            return given if get_args(self.kind) == (int,) else given.split(",")
        return self.kind(given) if self.kind in (int, float) else given

    def described(self) -> dict[str, Any]:
        """Return the parameter's entry in metadata.json."""
        label = re.sub("([A-Z])", r" \1", self.name).lower()
        return {
            "name": self.name,
            "label": label[:1].upper() + label[1:],
            "helpText": self.help,
            "isOptional": self.optional,
            "regexes": [f"^{self.pattern}$"],
        }


def parameters() -> list[Parameter]:
    made = []
    for option, setting in options_of("privatize").items():
        if setting.place not in LEFT_OUT:
            made.append(_parameter(option, setting))
        if setting.place == "mechanism.name":
            help = "Parameters of the mechanism, such as gamma=18. Separate several by commas."
            made.append(Parameter("parameter", "parameter", list[str], _several(_PARAMETER), help, optional=True))
    return made


def _parameter(option: str, setting: Setting) -> Parameter:
    helped = {
        "corpus.input": "Files, folders or globs at Cloud Storage.",
        "key.path": "The place of the key, never the key: a version of a secret, or a file that only the launcher "
        "can read.",
    }.get(setting.place, setting.help(_camel))
    helped += " Separate several by commas." if setting.kind == list[str] else ""
    needed = setting.is_needed("privatize") or setting.place == "key.path"
    return Parameter(_camel(setting.place), option, setting.kind, _pattern(setting), helped, not needed)


def _camel(place: str) -> str:
    """Return the parameter of a setting."""
    (option,) = (name for name, setting in options_of("privatize").items() if setting.place == place)
    return re.sub("_([a-z])", lambda match: match[1].upper(), option)


def metadata() -> dict[str, Any]:
    return {
        "name": "corpusveil privatize",
        "description": "Privatizes a text corpus with word-level metric differential privacy: shards in, private "
        "shards and a manifest out.",
        "streaming": False,
        "parameters": [parameter.described() for parameter in parameters()],
    }


def parted(given: Sequence[str]) -> tuple[dict[str, Any], list[str], str]:
    """Split the launcher's arguments into values of ``privatize``'s options, options for Beam, and the key's place.

    Raises UserError for a parameter that is missing, comes twice or has a value that is not allowed.
    """
    known = {parameter.name: parameter for parameter in parameters()}
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
            raise ConflictError(f"Parameter {name}: it is given twice; leave one of the two out.")
        if not equals and not words:
            raise UnsetError(f"Parameter {name}: its value is missing; add it.")
        values[name] = value if equals else words.pop(0)
    for parameter in known.values():
        if not parameter.optional and parameter.name not in values:
            raise UnsetError(f"Parameter {parameter.name} is missing; add it.")
    own = {known[name].option: known[name].value(value) for name, value in values.items()}
    return own, [word for word in beam if not word.startswith("--runner")], own.pop("key")


def prepared(given: Sequence[str]) -> Settings:
    """Return the settings of a job on Dataflow, whose key this process has in its environment from now on."""
    own, beam, location = parted(given)
    if not (image := os.environ.get(IMAGE_VARIABLE)):
        raise UnsetError(f"{IMAGE_VARIABLE} is not set; 'corpusveil package dataflow' writes it into the Dockerfile.")
    of_image = [f"--sdk_container_image={image}", "--sdk_location=container"]
    beam, unknown = split_options(DATAFLOW, [*beam, *of_image])
    for word in unknown:
        print(f"corpusveil: {word.partition('=')[0]}: Beam has no such option; it is ignored.", file=sys.stderr)
    os.environ[KEY_VARIABLE] = read_key(location)
    where = {"key_environment": KEY_VARIABLE, "engine": "dataflow"}
    return settings_of("privatize", own | where, beam)


def launch(given: Sequence[str]) -> int:
    """Run the template's launcher; return the exit status."""
    from corpusveil.cli.main import ended
    from corpusveil.cli.progress import Terminal
    from corpusveil.pipelines.privatize import run

    return ended(lambda: run(prepared(given), Terminal("none")) and None)
