"""A release: mechanism, budget, text policy and key, frozen; and its digest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from corpusveil.budget import Budget
from corpusveil.choices import DUPLICATES, Duplicates
from corpusveil.collocations.table import Collocations
from corpusveil.errors import UserError
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.draws import DrawKey
from corpusveil.sampling.keys import Key
from corpusveil.text.classes import TOKENIZER_VERSION
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.kernel import KERNEL_VERSION, Kernel


@dataclass(frozen=True, slots=True)
class Release:
    """Everything that decides what a document becomes."""

    mechanism: Mechanism
    budget: Budget
    policy: TextPolicy = field(default_factory=TextPolicy)
    key: Key = field(default_factory=Key.generate)
    collocations: Collocations | None = None
    """What words are joined to, where the policy's tokenizer is not ``word``."""
    duplicates: Duplicates = "independent"
    """Whether equal texts under different identities get noise of their own, the same, or all but one are left out."""

    def __post_init__(self) -> None:
        if (self.policy.tokenizer == "word") != (self.collocations is None):
            need = "needs none" if self.policy.tokenizer == "word" else "needs one: --collocations URL"
            raise UserError(f"tokenizer {self.policy.tokenizer}: a collocation table is what it {need}.")
        if self.duplicates not in DUPLICATES:
            raise UserError(f"duplicates = {self.duplicates!r}: it may be {' or '.join(DUPLICATES)}.")
        read = {"space": self.mechanism.space.hyphens}
        read |= {} if self.collocations is None else {"collocation table": self.collocations.hyphens}
        for what, found in read.items():
            if found not in (None, self.policy.hyphens):
                raise UserError(
                    f"hyphens {self.policy.hyphens}: the {what} is of text that was read with hyphens {found}; read "
                    "the documents alike."
                )
        if self.collocations is not None:
            self.collocations.require_some_in(self.mechanism.space.vocabulary)

    def configuration(self) -> dict[str, Any]:
        """Return all that can change the output text but the key; never engine, paths or workers."""
        return {
            "kernel": KERNEL_VERSION,
            "tokenizer": TOKENIZER_VERSION,
            "mechanism": {"name": self.mechanism.name, **self.mechanism.parameters()},
            "budget": self.budget.as_dict(),
            "text": self.policy.as_dict(),
            "space": self.mechanism.space.digest,
            **({} if self.collocations is None else {"collocations": self.collocations.digest}),
            **({} if self.duplicates == "independent" else {"duplicates": self.duplicates}),
        }

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) of the canonical JSON of the configuration."""
        canonical = json.dumps(self.configuration(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def name(self) -> str:
        """What a ledger calls the release: configuration and key, half of each digest."""
        return f"{self.digest[:16]}-{self.key.fingerprint()[:16]}"

    def kernel(self, *, whole_corpus: bool = False) -> Kernel:
        """Return the batch kernel. It holds what this release draws from, never the key itself.

        Raises UserError when copies are to be dropped by who does not have the ``whole_corpus`` before them.
        """
        if self.duplicates == "drop" and not whole_corpus:
            raise UserError(
                "duplicates = 'drop': which documents are copies is seen in a whole corpus only; use "
                "'corpusveil privatize', or remove copies beforehand."
            )
        return Kernel(
            self.mechanism,
            self.budget,
            self.policy,
            DrawKey.derive(self.key, self.digest),
            TOKENIZER_VERSION,
            self.collocations,
            self.duplicates == "same-noise",
        )
