"""The steps that a configuration file asks for, each a command line of its own, going on where they stopped."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import typer

from corpusveil.cli.configuration import Configuration
from corpusveil.errors import UserError
from corpusveil.storage import files
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.shapes import fits, parsed

STEP = "_step.json"
"""What a step was asked for, in the folder of its artefact, written before it begins."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command line of its own. ``artefact`` is where it writes, None when it knows by itself whether it is done."""

    name: str
    arguments: tuple[str, ...]
    where: tuple[str, ...]
    artefact: str | None
    settings: str
    """A digest of all that decides the artefact, earlier steps included; not of engine and workers."""

    @property
    def command(self) -> list[str]:
        """The whole command line."""
        return [self.name, *self.arguments, *self.where]


@dataclass(frozen=True, slots=True)
class _Command:
    """A step before it is known where it runs, and what was made of it."""

    name: str
    arguments: list[str]
    artefact: str | None


def do(step: Step, run: Callable[[list[str]], int], last: list[str]) -> None:
    """Do a step unless it is done; ``last`` ends its command line.

    Raises UserError when other settings made what is there; exits when it fails.
    """
    if step.artefact is not None and not _is_to_do(step):
        print(f"{step.name}: {step.artefact} is there already", file=sys.stderr)
        return
    print(f"{step.name}:", file=sys.stderr)
    status = run([*step.command, *last])
    if status:
        raise typer.Exit(status)


def _is_to_do(step: Step) -> bool:
    artefact = str(step.artefact)
    address = files.join(artefact, STEP)
    noted = files.read_if_there(address)
    complete = files.exists(files.join(artefact, "_artifact.json"))
    if noted is None and complete:
        raise UserError(
            f"{artefact}: an artefact is here that this configuration did not make; choose another place for "
            f"the step {step.name}, or leave its section out and name the artefact where it is used."
        )
    if noted is not None and _settings(noted, address) != step.settings:
        raise UserError(
            f"{artefact}: this was made with other settings or another corpus; choose another place for the step "
            f"{step.name}, or remove it."
        )
    if noted is None:
        files.write_bytes(address, json.dumps({"step": step.name, "settings": step.settings}).encode())
    return not complete


def _settings(noted: bytes, address: str) -> object:
    told = parsed(noted)
    if not fits(told, {"settings": object}):
        raise UserError(f"{address}: this note of a step is damaged; remove what was made there, and run again.")
    return told["settings"]


def steps(configuration: Configuration) -> Iterator[Step]:
    """Yield the steps that a configuration asks for, in their order.

    What made an artefact is noted with paths as they stand in the file, so that the folder of it all can be moved.
    """
    engine, before = configuration.values.get("engine", {}), ""
    places = {
        "train": tuple(_options(engine, {"name": "engine", "master": "master"})),
        "space": (),
    }
    for command, noted in zip(_commands(configuration), _commands(configuration.as_written()), strict=True):
        told = json.dumps([before, command.name, noted.arguments, _content(command.name, configuration)])
        before = hashlib.sha256(told.encode()).hexdigest()
        where = places.get(command.name, tuple(engine_arguments(configuration)))
        yield Step(command.name, tuple(command.arguments), where, command.artefact, before)


def _content(step: str, configuration: Configuration) -> list[list[Any]] | None:
    """Return what is known of the files that a step reads and no earlier step made: their names and sizes."""
    if step in ("count", "tokenize"):
        shards = find_shards(configuration.values["collocations"]["input"])
        return [[shard.relative, shard.size] for shard in shards]
    if step == "space" and configuration.values["space"]["vectors"]:
        paths = [configuration.values["space"]["vectors"], configuration.written["space"]["vectors"]]
        return [[written, files.size(path)] for path, written in zip(*paths, strict=True)]
    return None


def _commands(configuration: Configuration) -> Iterator[_Command]:
    values = configuration.values
    flow, vectors, space = (values.get(section) for section in ("collocations", "embeddings", "space"))
    if flow is not None:
        text = ["--text", flow["text"]]
        options = _options(flow, {"max_n": "max-n", "min_count": "min-count", "hyphens": "hyphens"})
        yield _Command("count", [*flow["input"], *text, "--output", flow["counts"], *options], flow["counts"])
        names = {name: name.replace("_", "-") for name in ("measure", "threshold", "connectors", "connectors_rule")}
        options = _options(flow, {**names, "score_min_count": "min-count"})
        yield _Command("score", ["--counts", flow["counts"], "--output", flow["table"], *options], flow["table"])
        options = ["--tokenizer", flow["tokenizer"], "--collocations", flow["table"], "--output", flow["tokens"]]
        yield _Command("tokenize", [*flow["input"], *text, *options], flow["tokens"])
    if vectors is not None and flow is not None:
        names = {name: name.replace("_", "-") for name in vectors if name != "vectors"}
        if vectors["trainer"] == "spark":  # which has none of these
            names = {name: names[name] for name in ("trainer", "dimensions", "window", "epochs", "min_count", "seed")}
        options = _options(vectors, names)
        arguments = ["--tokens", flow["tokens"], "--output", vectors["vectors"], *options]
        yield _Command("train", arguments, vectors["vectors"])
    if space is not None and (space["vectors"] or vectors is not None):
        source = {"vectors": space["vectors"] or [(vectors or {})["vectors"]]}
        keys = ("lists", "order", "seed", "vocabulary", "importance", "counts", "union")
        options = _options(space, {key: key for key in keys})
        arguments = [*_options(source, {"vectors": "vectors"}), "--output", space["path"], *options]
        yield _Command("space", arguments, space["path"])
    if "output" in values:
        yield _Command("privatize", privatize_arguments(configuration), None)


def engine_arguments(configuration: Configuration) -> list[str]:
    """Return the options that say where a command runs."""
    names = {"name": "engine", "workers": "workers", "master": "master"}
    return _options(configuration.values.get("engine", {}), names)


def behind(configuration: Configuration) -> list[str]:
    """Return what stands behind a command of a Beam runner: its options."""
    options = configuration.values.get("engine", {}).get("options")
    return ["--", *options] if options else []


def _options(values: Any, names: dict[str, str]) -> list[str]:
    """Return values as options of the command line; lists several times, flags where they are true."""
    found: list[str] = []
    for name, option in names.items():
        value = values.get(name)
        if value is True:
            found.append(f"--{option}")
        elif value is not None and value is not False:
            for one in value if isinstance(value, list) else [value]:
                found += [f"--{option}", str(one)]
    return found


def planning(configuration: Configuration) -> list[str]:
    """Return the command that says what the release of a configuration would take."""
    where = _options(configuration.values.get("engine", {}), {"name": "engine", "workers": "workers"})
    return ["privatize", *privatize_arguments(configuration), *where]


def privatize_arguments(configuration: Configuration) -> list[str]:
    """Return the arguments of the command ``privatize`` that a configuration stands for, but for the engine's."""
    values, given = configuration.values, configuration.explicit
    corpus, mechanism, budget, output = (values[name] for name in ("corpus", "mechanism", "budget", "output"))
    arguments = [*corpus["input"], "--space", values["space"]["path"], "--output", output["path"]]
    arguments += _options(corpus, {"text": "text", "id": "id", "root": "root", "name": "corpus", "keep": "keep"})
    arguments += ["--mechanism", mechanism["name"]]
    for name, value in mechanism.items():
        if name != "name":
            arguments += ["--parameter", f"{name}={value}"]
    weights = ",".join(map(str, budget.get("weights", [])))
    arguments += ["--weights", weights] if weights else []
    for section in ("budget", "text"):  # what a strategy sets is not said twice
        names = {name: name.replace("_", "-") for name in given.get(section, ()) if name != "weights"}
        arguments += _options(values.get(section, {}), dict(sorted(names.items())))
    arguments += _options(values.get("key", {}), {"path": "key", "environment": "key-environment"})
    ledger = values.get("ledger")
    if ledger is not None:
        names = {"path": "ledger", "cap": "cap", "cap_token": "cap-token", "cap_ldp": "cap-ldp"}
        arguments += _options(ledger, names)
    names = {name: name.replace("_", "-") for name in output if name != "path"}
    arguments += _options(output, names)
    engine = values.get("engine", {})
    arguments += _options(engine, {"runner": "runner"})
    return arguments
