"""YAML as people write it: items indented, a text of several lines as a block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Indents items, and repeats a value instead of naming it."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT002
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def yaml_of(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return several documents as one text, keys in their order."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=120)
