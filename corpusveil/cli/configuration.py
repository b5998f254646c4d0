"""A configuration file: which sections and keys there are, read strictly, and written out whole."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpusveil.choices import ALLOCATIONS, CSV_FORMULAS, DUPLICATES, HYPHENS, MEASURES, POLICIES
from corpusveil.errors import UserError
from corpusveil.jobs.schedule import COMPARE
from corpusveil.mechanisms import registry
from corpusveil.storage.formats import FORMATS
from corpusveil.text.policy import TOKENIZERS
from corpusveil.transforms.strategies import STRATEGIES

_BARE = re.compile(r"[A-Za-z0-9_-]{1,60}")
_SHOWN_LENGTH = 120
ENGINES = ("local", "spark", "beam")


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value may be. A ``path`` is relative to the file that it stands in."""

    name: str
    default: Any = None
    choices: tuple[str, ...] = ()
    needed: bool = False

    def fault(self, value: Any) -> str | None:
        """Say what is wrong with a value, None when nothing is."""
        tests: Mapping[str, Callable[[], bool]] = {
            "text": lambda: _is_text(value),
            "path": lambda: _is_text(value),
            "texts": lambda: isinstance(value, list) and all(map(_is_text, value)),
            "paths": lambda: isinstance(value, list) and all(map(_is_text, value)),
            "options": lambda: isinstance(value, list) and all(map(_is_text, value)),
            "number": lambda: _is_number(value) and abs(value) <= sys.float_info.max,
            "whole number": lambda: _is_whole(value),
            "whole numbers": lambda: isinstance(value, list) and all(map(_is_whole, value)),
            "true or false": lambda: isinstance(value, bool),
        }
        if not tests[self.name]():
            needed = dict.fromkeys(("text", "path"), "a text in quotes") | {"number": "a number"}
            needed |= dict.fromkeys(("texts", "paths", "options"), "a list of texts in quotes")
            needed |= {"whole number": "a whole number", "whole numbers": "a list of whole numbers"}
            return f"{needed.get(self.name, self.name)} is needed"
        if self.name != "options" and any(_looks_like_option(one) for one in _listed(value)):
            way = "; write ./ before it" if self.name in ("path", "paths") else ""
            return f"a text that begins with a dash could be taken for an option{way}"
        if self.choices and value not in self.choices:
            return f"it may be {', '.join(self.choices)}{_nearest(value, self.choices)}"
        return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _looks_like_option(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("-")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and isinstance(value, int) and abs(value) < 1 << 63


def _text(default: str | None = None, *choices: str, **more: Any) -> Kind:
    return Kind("text", default, choices, **more)


def _path(**more: Any) -> Kind:
    return Kind("path", **more)


def _number(default: float | None = None, **more: Any) -> Kind:
    return Kind("number", default, **more)


def _whole(default: int | None = None, **more: Any) -> Kind:
    return Kind("whole number", default, **more)


SECTIONS: Mapping[str, Mapping[str, Kind]] = {
    "corpus": {
        "input": Kind("paths", needed=True),
        "text": _text("text"),
        "id": _text(),
        "keep": Kind("texts", []),
        "root": _path(),
        "name": _text(),
    },
    "space": {
        "path": _path(needed=True),
        "vectors": Kind("paths", []),
        "counts": _path(),
        "lists": _whole(1),
        "order": _text("greedy", "greedy", "improved"),
        "union": Kind("true or false", default=False),
        "seed": _whole(0),
        "vocabulary": _path(),
        "importance": _path(),
    },
    "mechanism": {"name": _text(None, *registry.names(), needed=True)},
    "budget": {
        "epsilon": _number(needed=True),
        "per": _text("token", "token", "document"),
        "allocation": _text("uniform", *ALLOCATIONS, "dataset"),
        "weights": Kind("whole numbers", []),
        "strategy": _text(None, *STRATEGIES),
        "average_words": _number(),
        "field_weights": _text(),
    },
    "text": {
        "tokenizer": _text("word", *TOKENIZERS),
        "collocations": _path(),
        "unknown_words": _text("resample", *POLICIES),
        "stop_words": _text("privatize", *POLICIES),
        "numbers": _text("resample", *POLICIES),
        "contacts": _text("mask", *POLICIES),
        "punctuation": _text("keep", *POLICIES),
        "other": _text("drop", *POLICIES),
        "layout": _text("normalize", "normalize", "keep"),
        "case": _text("lower", "lower", "restore"),
        "hyphens": _text("split", *HYPHENS),
    },
    "key": {"path": _path(), "environment": _text()},
    "ledger": {"path": _path(needed=True), "cap": _number(), "cap_token": _number(), "cap_ldp": _number()},
    "engine": {
        "name": _text("local", *ENGINES),
        "workers": _whole(),
        "master": _text(),
        "runner": _text(),
        "options": Kind("options", []),
    },
    "output": {
        "path": _path(needed=True),
        "format": _text("same", *FORMATS),
        "records": _path(),
        "csv_formulas": _text("keep", *CSV_FORMULAS),
        "on_bad_rows": _text("fail", "fail", "quarantine"),
        "duplicates": _text("independent", *DUPLICATES),
        "accept_no_guarantee": Kind("true or false", default=False),
        "rows_per_task": _whole(),
    },
    "schedule": {
        "state": _path(),
        "compare": _text("stamp", *COMPARE),
        "prometheus": _path(),
        "at": _text("0 3 * * *"),
    },
    "collocations": {
        "input": Kind("paths", needed=True),
        "text": _text("text"),
        "counts": _path(needed=True),
        "table": _path(needed=True),
        "tokens": _path(needed=True),
        "max_n": _whole(3),
        "min_count": _whole(5),
        "measure": _text("pmi", *MEASURES),
        "threshold": _number(2.0),
        "score_min_count": _whole(1),
        "connectors": _path(),
        "connectors_rule": _text("strict", "strict", "edges"),
        "tokenizer": _text("gst", *TOKENIZERS[1:]),
        "hyphens": _text("split", *HYPHENS),
    },
    "embeddings": {
        "vectors": _path(needed=True),
        "trainer": _text("gensim", "gensim", "spark"),
        "dimensions": _whole(300),
        "window": _whole(5),
        "negative": _whole(5),
        "hs": _whole(0),
        "epochs": _whole(5),
        "min_count": _whole(5),
        "sg": _whole(0),
        "sample": _number(0.001),
        "alpha": _number(0.025),
        "seed": _whole(1),
        "threads": _whole(1),
    },
}
RELEASE = ("corpus", "space", "mechanism", "budget", "output")
"""The sections that a release needs."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The sections of a file, every key with its value or default; ``explicit`` are the keys that stand in it.

    Paths in ``values`` are whole: relative ones are relative to the folder of the file, whatever the working folder.
    ``written`` has them as they stand in the file.
    """

    file: str
    values: Mapping[str, Mapping[str, Any]]
    explicit: Mapping[str, frozenset[str]]
    written: Mapping[str, Mapping[str, Any]]

    def fault(self, key: str, sentence: str) -> UserError:
        """Return an error that names a key of this file."""
        return UserError(f"{self.file}, {key}: {sentence}.")

    def paths(self) -> Iterator[tuple[str, str]]:
        """Yield every path as it stands in the file, with its key."""
        for section, values in self.written.items():
            for name, value in values.items():
                kind = SECTIONS[section].get(name)
                if kind is not None and kind.name in ("path", "paths"):
                    yield from ((f"{section}.{name}", one) for one in _listed(value))

    def as_written(self) -> Configuration:
        """Return the same with paths as they stand in the file, by which what was made of it is known again."""
        return dataclasses.replace(self, values=self.written)

    def toml(self) -> str:
        """Return the whole configuration, defaults and what a strategy sets written out, as a file of one meaning.

        Paths are as they were given, so it means the same in the same folder.
        """
        strategy = STRATEGIES.get(self.values.get("budget", {}).get("strategy", ""), {})
        lines = []
        for section, values in self.written.items():
            own = {name: strategy.get(name, value) for name, value in values.items()}
            lines += [f"[{section}]", *(f"{name} = {_toml(value)}" for name, value in own.items()), ""]
        return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    written = json.dumps(value, ensure_ascii=False)  # texts, numbers and lists of them are written alike
    return written.replace("\x7f", "\\u007f")  # but for this one, which TOML wants escaped


def _shown(name: str) -> str:
    """Return a name of a section or key as it can stand in a sentence."""
    return name if _BARE.fullmatch(name) else _cut(json.dumps(name))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."


def read_configuration(file: str) -> Configuration:
    """Read a file. Raises UserError that names file and key for what is unknown, missing or of another type."""
    try:
        data = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{file}: this file can't be read ({error.strerror}).") from None
    except RecursionError:
        raise UserError(f"{file}: this is no configuration: its lists are nested too deep.") from None
    except ValueError as error:  # also what is no UTF-8, or a number of thousands of digits
        raise UserError(f"{file}: this is no TOML: {_cut(ascii(str(error).rstrip('.'))[1:-1])}.") from None
    written: dict[str, dict[str, Any]] = {}
    for section, given in data.items():
        if section not in SECTIONS:
            if not isinstance(given, dict):
                raise UserError(f"{file}, {_shown(section)}: a key stands in a section{_elsewhere(section)}.")
            raise UserError(f"{file}, [{_shown(section)}]: there is no such section{_nearest(section, SECTIONS)}.")
        if not isinstance(given, dict):
            raise UserError(f"{file}, {section}: this is a section; write [{section}] and its keys below.")
        written[section] = _section(file, section, given)
    folder = os.path.dirname(os.path.abspath(file))
    values = {section: _located(folder, section, given) for section, given in written.items()}
    explicit = {section: frozenset(given) for section, given in data.items()}
    configuration = Configuration(file, values, explicit, written)
    _check(configuration)
    return configuration


def _section(file: str, section: str, given: dict[str, Any]) -> dict[str, Any]:
    known = dict(SECTIONS[section])
    if section == "mechanism" and given.get("name") in registry.names():
        known |= {name: Kind("number") for name in registry.parameters(str(given["name"]))}
    for name, value in given.items():
        if name not in known:
            near = _elsewhere(name, exactly=True) or _nearest(name, known) or _elsewhere(name)
            raise UserError(f"{file}, {section}.{_shown(name)}: there is no such key{near}.")
        if (fault := known[name].fault(value)) is not None:
            raise UserError(f"{file}, {section}.{name} = {_toml_or_repr(value)}: {fault}.")
    for name, kind in known.items():
        if kind.needed and name not in given:
            raise UserError(f"{file}, {section}.{name}: this key is missing.")
    filled = {name: given.get(name, kind.default) for name, kind in known.items()}
    return {name: value for name, value in filled.items() if value is not None}


def is_here(path: str) -> bool:
    """Say whether a path is a relative one: no URL, none from the root of the disk or somebody's home folder."""
    return "://" not in path and not path.startswith(("/", "~"))


def _located(folder: str, section: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a section with paths from the folder of their file on."""

    def whole(path: str) -> str:
        return os.path.normpath(os.path.join(folder, path)) if is_here(path) else path

    kinds = {name: kind.name for name, kind in SECTIONS[section].items()}
    places: dict[str, Callable[[Any], Any]] = {"path": whole, "paths": lambda listed: [whole(one) for one in listed]}
    return {name: places.get(kinds.get(name, ""), lambda same: same)(value) for name, value in given.items()}


def _toml_or_repr(value: Any) -> str:
    try:
        return _cut(json.dumps(value))
    except (TypeError, ValueError, RecursionError):  # a date; a number of thousands of digits
        return f"a {type(value).__name__}"


def _nearest(name: Any, names: Iterable[str]) -> str:
    found = difflib.get_close_matches(str(name), list(names), 1, 0.5)
    return f"; did you mean {found[0]}?" if found else ""


def _elsewhere(name: str, *, exactly: bool = False) -> str:
    """Return the nearest keys of all sections as the end of a sentence, or nothing."""
    places: dict[str, list[str]] = {}
    for section, keys in SECTIONS.items():
        for key in keys:
            places.setdefault(key, []).append(f"{section}.{key}")
    for parameter in {one for mechanism in registry.names() for one in registry.parameters(mechanism)}:
        places.setdefault(parameter, []).append(f"mechanism.{parameter}")
    found = [name] if exactly else difflib.get_close_matches(name, places, 1, 0.7)
    listed = [place for one in found for place in places.get(one, ())]
    return f"; did you mean {' or '.join(listed)}?" if listed else ""


def _check(configuration: Configuration) -> None:
    """Raise UserError for keys that do not go together."""
    values, fault = configuration.values, configuration.fault
    of_release = ("mechanism", "budget", "text", "key", "ledger", "output", "schedule")
    release = [section for section in of_release if section in values]
    for section in RELEASE:
        if release and section not in values:
            raise fault(f"[{section}]", f"this section is missing, and [{release[0]}] is for a release, which needs it")
    if "embeddings" in values and "collocations" not in values:
        raise fault("[embeddings]", "vectors are trained on tokens; add [collocations], which makes them")
    given = values.get("space", {}).get("vectors")
    if given and "embeddings" in values:
        raise fault("space.vectors", "[embeddings] trains the vectors of the space; leave one of the two out")
    if not release and "collocations" not in values and not given:
        raise fault("[corpus]", "nothing is to be done; add [collocations], space.vectors or the sections of a release")
    key = values.get("key", {})
    if "path" in key and "environment" in key:
        raise fault("key.environment", "key.path says where the key is, too; leave one out")
    budget, text, engine = values.get("budget", {}), values.get("text", {}), values.get("engine", {})
    if "strategy" in budget and "average_words" not in budget:
        raise fault("budget.average_words", "budget.strategy needs it: words of an average text, from public knowledge")
    if budget.get("allocation") == "dataset" and "average_words" not in budget:
        raise fault("budget.average_words", "budget.allocation = dataset needs it, from public knowledge")
    if "average_words" in budget and "strategy" not in budget and budget["allocation"] != "dataset":
        raise fault("budget.average_words", "it is for budget.strategy or budget.allocation = dataset; add one")
    if bool(budget.get("weights")) != (budget.get("allocation") == "position"):
        raise fault("budget.weights", "they go with budget.allocation = position; give both or neither")
    tokenizer = STRATEGIES.get(budget.get("strategy", ""), text).get("tokenizer", "word")
    if (tokenizer == "word") != ("collocations" not in text):
        raise fault("text.collocations", f"a table goes with a tokenizer of gst, mst or optimal, and it is {tokenizer}")
    if "master" in engine and engine["name"] != "spark":
        raise fault("engine.master", "it is for engine.name = spark")
    for name in ("runner", "options"):
        if engine.get(name) and engine["name"] != "beam":
            raise fault(f"engine.{name}", "it is for engine.name = beam")
