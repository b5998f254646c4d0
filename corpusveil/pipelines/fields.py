"""The declaration of a setting: one field with type, default, bounds, and the text of options, keys and pages."""

from __future__ import annotations

import dataclasses
import pkgutil
import re
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from corpusveil.choices import Group
from corpusveil.errors import SettingError, UserError
from corpusveil.registry import Registry

_NAMED = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)?)\}")
BEHIND = "--"
"""The option for the arguments after two dashes on a command line."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: the declarations of its field other than the type, and its place in the tree."""

    group: Group | None = None
    """Its heading; by default that of its section."""
    metavar: str | None = None
    path: bool = False
    """Whether it names a place; a relative path is relative to its file."""
    choices: str | None = None
    """The allowed names, or a function that returns them, as ``module:attribute``; imported on demand."""
    often: bool = False
    """Whether help lists it first, among the options that most calls need."""
    start: Any = None
    """Its value in a new file, if a person has to decide it."""
    in_file: bool = False
    """Whether only files of settings and calls of Python have it, since hardly a call sets it."""
    named: bool = False
    """Whether it may be the name of an installed space."""
    name: str = ""
    """The name of its section, and its own."""
    key: str = ""
    info: FieldInfo = field(default_factory=FieldInfo)
    is_argument: bool = False
    """Whether it is an argument of a command, without a name."""
    is_needed: bool = False
    """Whether a command requires it."""

    def __call__(self, schema: dict[str, Any]) -> None:
        if self.choices is not None:
            schema["enum"] = list(self.known)

    @property
    def known(self) -> tuple[str, ...]:
        """The allowed names, if only the program knows them."""
        if self.choices is None:
            return ()
        names = pkgutil.resolve_name(self.choices)
        return tuple(names() if callable(names) else names)

    @property
    def setting(self) -> str:
        """Its section and key, as a file names it."""
        return f"{self.name}.{self.key}"

    @property
    def kind(self) -> Any:
        """Its type without None, which means that it is not given."""
        return plain(self.info.annotation)

    def help(self, name: Callable[[str], str] = str) -> str:
        """Return its help, with other settings under the caller's names."""
        return named(str(self.info.description), name)

    @property
    def values(self) -> tuple[str, ...]:
        """The allowed values of a choice."""
        return tuple(map(str, typing.get_args(self.kind))) if typing.get_origin(self.kind) is Literal else self.known

    @property
    def default(self) -> Any:
        """Its default, or None."""
        return None if self.info.is_required() else self.info.get_default(call_default_factory=True)


def key(help: str, default: Any = ..., **more: Any) -> Any:
    """Declare a setting. ``more`` are fields of ``Setting``, and pydantic's bounds."""
    own = {field.name: more.pop(field.name) for field in dataclasses.fields(Setting) if field.name in more}
    setting = Setting(**own)
    value: dict[str, Any] = {"default_factory": list} if isinstance(default, list) else {"default": default}
    return Field(**value, description=help, json_schema_extra=setting, **more)


def fault(place: str, sentence: str, kind: type[UserError]) -> PydanticCustomError:
    """Return an error of one setting, ``section.key``; others are named in the sentence as ``{section.key}``."""
    return PydanticCustomError("rule", "{sentence}", {"place": place, "sentence": sentence, "kind": kind})


class Section(BaseModel):
    """A section of the settings; ``GROUP`` is the heading of its settings.

    Another package adds one by an entry point of ``corpusveil.sections``, and its rules by the two methods.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, defer_build=True, hide_input_in_errors=True, allow_inf_nan=False,
        str_min_length=1, protected_namespaces=(),
    )  # fmt: skip
    GROUP: ClassVar[Group] = "Settings"

    @model_validator(mode="after")
    def _within_choices_and_64_bits(self) -> typing.Self:
        for name, info in type(self).model_fields.items():
            setting, value = setting_of(info), getattr(self, name)
            if any(isinstance(item, int) and abs(item) >= 1 << 63 for item in listed(value)):
                raise PydanticCustomError("int_size", "64 bits", {"key": name, "value": value, "lt": float(1 << 63)})
            if setting.choices is not None and value is not None and value not in setting.known:
                raise PydanticCustomError("literal_error", "one of them", {"key": name, "value": value})
        return self

    def broken(self, value: Callable[[str], Any]) -> Iterator[tuple[str, str]]:  # noqa: ARG002 - most break no rule
        """Yield contradictions within an added section, or with others, each a place and a sentence."""
        yield from ()

    def incomplete(self) -> Iterator[tuple[str, str]]:
        """Yield what a file lacks that has this added section."""
        yield from ()


SECTIONS: Registry[type[Section]] = Registry("section")
"""The sections of other packages."""


def listed(value: Any) -> list[Any]:
    """Return the values of a setting as a list, whether it is a single value, a list or None."""
    return value if isinstance(value, list) else [] if value is None else [value]


def pairs(what: str, given: list[str]) -> dict[str, Any]:
    """Return values by name; they are numbers, true, false, or text."""
    import orjson

    values: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise SettingError(f"{what} {pair}: write it as NAME=VALUE.")
        try:
            values[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            values[name] = value
    return values


def named(sentence: str, name: Callable[[str], str]) -> str:
    """Return a sentence with the caller's names for ``{section.key}`` and ``{section}``."""
    return _NAMED.sub(lambda match: name(match[1]), sentence)


def plain(annotation: Any) -> Any:
    """Return a type without ``| None``."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        (annotation,) = (kind for kind in typing.get_args(annotation) if kind is not types.NoneType)
    return annotation


def declared(tree: type[BaseModel]) -> Iterator[Setting]:
    """Yield every setting of a tree of sections, in its order."""
    for name, info in tree.model_fields.items():
        section = plain(info.annotation)
        for key, field_info in section.model_fields.items():
            setting = setting_of(field_info)
            group = setting.group or section.GROUP
            yield dataclasses.replace(setting, group=group, name=name, key=key, info=field_info)


def setting_of(info: FieldInfo) -> Setting:
    """Return the setting that a field declares."""
    return typing.cast("Setting", info.json_schema_extra)
