"""``corpusveil mechanisms``: what there is, what each promises, and the profiles that set them as a study did."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from corpusveil.mechanisms import find, names
from corpusveil.text.policy import ROLE_NAMES
from corpusveil.transforms.profiles import PROFILES


def mechanisms(
    name: Annotated[str | None, typer.Argument(help="A mechanism, for its parameters and mathematics.")] = None,
) -> None:
    """List the mechanisms, or explain one.

    Example: corpusveil mechanisms ring-geometric
    """
    if name is None:
        table = Table("mechanism", "guarantee", "summary", "paper", box=None, pad_edge=False)
        for known in names():
            cls = find(known)
            table.add_row(known, "epsilon" if cls.private else "none", cls.summary, cls.paper)
        Console().print(table)
        print("\nprofiles, a study's settings for 'corpusveil privatize --profile NAME':")
        for profile in PROFILES.values():
            roles = [role for role in ROLE_NAMES if getattr(profile.policy(), role, None) == "keep"]
            kept = ", ".join(roles).replace("_", " ") or "nothing"
            print(f"  {profile.name}: {profile.study}; epsilon per {profile.unit}; in the clear: {kept}")
        return
    cls = find(name)
    print(f"{cls.name}: {cls.summary}\npaper: {cls.paper}\n")
    print(inspect.getdoc(sys.modules[cls.__module__]))
    print("\nparameters:")
    for field in dataclasses.fields(cls):
        if field.name != "space":
            print(f"  {field.name} = {field.default}")
    for profile in PROFILES.values():
        for parameter, value in profile.parameters.get(name, {}).items():
            print(f"  {parameter} = {value} with --profile {profile.name}")
