"""What every release is: what decides its texts, its guarantee and its account; digest, name and subkey follow."""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from corpusveil.display import Shown
from corpusveil.errors import of_other_type
from corpusveil.ledger.account import Account
from corpusveil.ledger.entries import VERSION as LEDGER_VERSION
from corpusveil.sampling.draws import DrawKey

if TYPE_CHECKING:
    import pyarrow as pa

    from corpusveil.choices import Duplicates
    from corpusveil.kernel.transform import Transform
    from corpusveil.mechanisms.base import Guarantee
    from corpusveil.passages.store import Store
    from corpusveil.sampling.keys import Key
    from corpusveil.spaces import Space


NOT_PRIVATE = "NOT PRIVATE: made with the published test key"
MAKE_KEY = "cv.Key.load(PATH), of a file that 'corpusveil key new PATH' makes"


def check_parts(release: AnyRelease, parts: Mapping[str, tuple[Any, str]]) -> None:
    """Raise UserError for a part of another type than is given here, with how to make one."""
    for name, (kind, make) in parts.items():
        if not isinstance(value := getattr(release, name), kind):
            raise of_other_type(name, value, make)


@dataclass(frozen=True, slots=True, repr=False)
class AnyRelease(Shown):
    """A configuration and a key, which decide the private text of a document: by words, or by passages."""

    counted: ClassVar[Literal["token", "passage"]]
    """What is drawn, and counted of its texts."""

    key: Key = field(kw_only=True)
    """Required: a key that nobody chose would differ in each process, and each key spends the budget once more."""
    duplicates: Duplicates = field(default="independent", kw_only=True)

    @abc.abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Return everything except the key that can change the output text; never engine, paths or workers."""

    @abc.abstractmethod
    def kernel(self) -> Transform:
        """Return the batch kernel. It holds the subkeys of this release, never the key itself."""

    @abc.abstractmethod
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the release as a whole, as the command line and the manifest state it."""

    @abc.abstractmethod
    def in_brief(self) -> str:
        """Return the guarantee in two sentences; the notes of the guarantee have its conditions."""

    @abc.abstractmethod
    def law(self) -> str:
        """Return, in a sentence, how a text changes at this epsilon."""

    @abc.abstractmethod
    def at(self, epsilon: float) -> Self:
        """Return this release at another epsilon, of a token or of a piece."""

    @property
    @abc.abstractmethod
    def public(self) -> Space | Store:
        """The public data that it draws from."""

    def remarks(self) -> Iterable[str]:
        """Return what is said before a run: what a risk chose, and which lists were read."""
        return ()

    def choices(self) -> Iterable[str]:
        """Return what other settings would bring at this epsilon, a line for each."""
        return ()

    def refuse(self, texts: pa.Array) -> None:
        """Raise UserError if the first of these texts, Arrow strings [D], show that the release was made of them."""

    def statement(self) -> dict[str, Any]:
        """Return the guarantee as JSON-able fields, and in words, for a manifest."""
        guarantee = self.guarantee()
        return {"guarantee": guarantee.as_dict(), "guarantee_in_words": list(guarantee.notes)}

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) of the canonical JSON of the configuration."""
        canonical = json.dumps(self.configuration(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def name(self) -> str:
        """The name of the release in a ledger: half of each digest, of configuration and key."""
        return f"{self.digest[:16]}-{self.key.fingerprint()[:16]}"

    @property
    def title(self) -> str:
        """The title of its card."""
        return f"Release {self.name}{f' ({NOT_PRIVATE})' if self.key.test else ''}"

    @property
    def key_assumption(self) -> str:
        """What its guarantee assumes of the key."""
        if self.key.test:
            return f"{NOT_PRIVATE}, which everybody has."
        return "The key is secret, and no reader can have texts of their own privatized under it."

    def account(self, column: str) -> Account:
        """Return what accounts in a ledger for documents of this release and text column."""
        made = self.configuration()
        about = {
            "version": LEDGER_VERSION, "column": column, "release": self.name, "mechanism": made["mechanism"]["name"],
            "space": made.get("store", made["space"]), "budget": made["budget"],
        }  # fmt: skip
        return Account(self.kernel(), about, f"{self.digest} {self.key.fingerprint()}", column)

    def draw_key(self) -> DrawKey:
        """Return the subkey of this release."""
        return DrawKey.derive(self.key, self.digest)


def require_release(value: Any) -> AnyRelease:
    """Return a release. Raises UserError for anything else."""
    if not isinstance(value, AnyRelease):
        raise of_other_type("release", value, "cv.Release(mechanism, budget, key=key), or cv.PassageRelease")
    return value
