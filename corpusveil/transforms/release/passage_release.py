"""A release by passages: everything that decides which public passages replace a document."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import pyarrow as pa

from corpusveil.budget.budget import written
from corpusveil.choices import DUPLICATES
from corpusveil.display import Card, rounded_up
from corpusveil.errors import SettingError, check_whole, not_a_choice
from corpusveil.kernel.kernel import KERNEL_VERSION
from corpusveil.kernel.passage_kernel import READER, PassageKernel
from corpusveil.mechanisms.base import Guarantee
from corpusveil.passages import figures
from corpusveil.passages.encoder import MeanVectors
from corpusveil.passages.overlap import refuse_overlap
from corpusveil.passages.passage_exchange import PassageExchange
from corpusveil.passages.pieces import PERS, Per
from corpusveil.passages.store import Store
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import check_epsilon
from corpusveil.transforms.release.keyed_release import MAKE_KEY, AnyRelease, check_parts
from corpusveil.transforms.release.promises import NO_AUTHOR, ORDER, OVERLAP, of_passages


@dataclass(frozen=True, slots=True, repr=False)
class PassageRelease(AnyRelease):
    """All that decides the output of a release by passages. It is frozen, and its digest identifies it.

    ``epsilon`` (nats) is the cost of one passage: per *document*, a text is one passage; per *paragraph* or *sentence*,
    n passages cost n epsilon, and n is disclosed. ``most_pieces`` limits n: the rest of a text belongs to its last
    passage. ``key`` is secret and required. ``duplicates``: equal texts get ``independent`` noise or ``same-noise``
    (then equal passages do, too). Raises UserError for values out of range.

    >>> release = cv.PassageRelease(cv.PassageExchange(cv.load_store("en")), epsilon=10, key=key)
    >>> len(cv.privatize(["The river was cold."], release, ids=["r-1"]))
    1
    """

    mechanism: PassageExchange
    epsilon: float
    per: Per = "document"
    most_pieces: int | None = field(default=None, kw_only=True)
    accept_overlap: bool = field(default=False, kw_only=True, compare=False)
    """Release although the input's texts are in the store; the manifest says so, and it is in no digest."""

    counted: ClassVar[Literal["passage"]] = "passage"

    def __post_init__(self) -> None:
        check_parts(
            self, {"mechanism": (PassageExchange, "cv.PassageExchange(cv.load_store(URL))"), "key": (Key, MAKE_KEY)}
        )
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        for name, value, choices in (("per", self.per, PERS), ("duplicates", self.duplicates, DUPLICATES)):
            if value not in choices:
                raise not_a_choice(name, value, choices)
        if self.most_pieces is not None:
            check_whole("most_pieces", self.most_pieces)
            if self.per == "document":
                raise SettingError("most_pieces: a whole text is one passage; leave this out, or choose per sentence.")
        self.mechanism.exchange(self.epsilon)

    def configuration(self) -> dict[str, Any]:
        """Return everything except the key that can change the output text; never engine, paths or workers."""
        exchange, store = self.mechanism.exchange(self.epsilon), self.mechanism.store
        return {
            "kernel": KERNEL_VERSION,
            "tokenizer": READER,
            "mechanism": {
                "name": self.mechanism.name, "neighbors": exchange.neighbors, "threshold": exchange.threshold,
            },
            "budget": {"epsilon": self.epsilon, "per": self.per},
            "text": {},
            "space": store.space.digest,
            "store": store.digest,
            "encoder": store.encoder.name,
            **({} if self.most_pieces is None else {"most_pieces": self.most_pieces}),
            **({} if self.duplicates == "independent" else {"duplicates": self.duplicates}),
        }  # fmt: skip

    def kernel(self) -> PassageKernel:
        """Return the batch kernel. It holds the subkeys of this release, never the key itself."""
        return PassageKernel(
            self.mechanism, self.epsilon, self.per, self.draw_key(),
            most_pieces=self.most_pieces, same_noise=self.duplicates == "same-noise",
            accept_overlap=self.accept_overlap,
        )  # fmt: skip

    def guarantee(self) -> Guarantee:
        """Return the guarantee of the release as a whole, as the command line and the manifest state it."""
        piece = self.mechanism.guarantee(self.epsilon)
        assumed = piece.assumptions[: 1 if self.accept_overlap else None]
        encoder = self.mechanism.store.encoder
        notes = of_passages(
            piece, self.per, self.duplicates, most_pieces=self.most_pieces, overlap=self.accept_overlap,
            encoder=None if isinstance(encoder, MeanVectors) else encoder.name,
        )  # fmt: skip
        return dataclasses.replace(
            piece, neighbors=_NEIGHBORS[self.per], disclosed=tuple(self._disclosed()),
            notes=tuple(notes), per=self.per,
            plain_ldp=piece.plain_ldp, assumptions=(*assumed, self.key_assumption),
        )  # fmt: skip

    def _disclosed(self) -> list[str]:
        shown = ["which texts are missing (null)", ORDER]
        if self.per != "document":
            shown.append(f"how many {self.per}s a text has")
        return [*shown, *(["which passages are equal"] if self.duplicates == "same-noise" else [])]

    def statement(self) -> dict[str, Any]:
        """Return the guarantee as JSON-able fields, and in words, for a manifest; and whose the public texts are.

        ``similarity`` is the mean of public texts that the store does not have and what would replace them.
        """
        store = self.mechanism.store
        info = store.info
        named = {name: info[name] for name in ("licence", "attribution") if info.get(name)}
        if info.get("figures"):
            exchange = self.mechanism.exchange(self.epsilon)
            named["similarity"] = round(exchange.mean(store.similarity, store.overall), 4)
        return AnyRelease.statement(self) | {"store": named}

    def at(self, epsilon: float) -> Self:
        return dataclasses.replace(self, epsilon=epsilon)

    @property
    def public(self) -> Store:
        return self.mechanism.store

    def in_brief(self) -> str:
        nats, any_two = rounded_up(self.mechanism.guarantee(self.epsilon).plain_ldp), "texts"
        adds_up = "."
        if self.per != "document":
            any_two, adds_up = f"{self.per}s", f", and two texts by the sum over their {self.per}s."
        said = f"without the key, a reader can distinguish any two {any_two} by at most {nats} nats{adds_up}"
        return f"{said} {self._facts}"

    @property
    def _facts(self) -> str:
        return OVERLAP if self.accept_overlap else NO_AUTHOR

    def law(self) -> str:
        exchange, of = self.mechanism.exchange(self.epsilon), "texts" if self.per == "document" else f"{self.per}s"
        return (
            f"{exchange.near:.0%} of {of} become one of the {exchange.neighbors:,} nearest passages, the others any of "
            f"{exchange.pieces:,}."
        )

    def choices(self) -> Iterator[str]:
        """Yield what each number of neighbors would bring at this epsilon, by the figures of the store."""
        chosen = self.mechanism.exchange(self.epsilon).neighbors
        for neighbors, near, picked, similarity in figures.choices(self.mechanism.store, self.epsilon):
            marked = " (chosen)" if neighbors == chosen else ""
            yield (
                f"neighbors {neighbors}{marked}: {near:.0%} become a near passage, mean similarity {similarity:.2f}; "
                f"a reader with {figures.CANDIDATES:,} candidates picks the original in {picked:.0%}"
            )

    def card(self) -> Card:
        exchange = self.mechanism.exchange(self.epsilon)
        return Card(
            self.title,
            [
                ("mechanism", f"{self.mechanism.name} ({exchange.neighbors:,} neighbors)"),
                ("store", repr(self.mechanism.store)),
                ("budget", f"epsilon {written(self.epsilon)} a {self.per}"),
                ("equal texts", str(self.duplicates)),
                ("in the clear", "; ".join(self._disclosed())),
                ("promise", "release.guarantee() shows it"),
                ("facts", self._facts),
            ],
        )

    def refuse(self, texts: pa.Array) -> None:
        if not self.accept_overlap:
            refuse_overlap(self.mechanism.store, texts)


_NEIGHBORS = {
    "document": "any two texts, of any length",
    "paragraph": "texts of equally many paragraphs; plain_ldp is for a paragraph",
    "sentence": "texts of equally many sentences; plain_ldp is for a sentence",
}
