"""The audits that settings ask for: of words, of documents, or curves by epsilon: ``corpusveil audit``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from corpusveil.budget import Budget
from corpusveil.errors import ConflictError, RefutedError, UnknownError, UnsetError
from corpusveil.evaluation.attacks.document_audit import DocumentAudit, audit_documents
from corpusveil.evaluation.attacks.guarantee_audit import Audit, audit
from corpusveil.evaluation.attacks.risk_curve import EPSILONS, RiskCurve, risk_curve
from corpusveil.language.ladder import reader_ladder
from corpusveil.language.model import load_model
from corpusveil.mechanisms import Mechanism, make
from corpusveil.mechanisms.registry import parameters
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.fields import pairs
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import load_space
from corpusveil.storage import files


def run(settings: Settings, watch: Watch | None = None) -> Audit | DocumentAudit | RiskCurve:
    """Do the audit; what ``[audit]`` leaves out is that of ``[mechanism]`` and ``[budget]``.

    Raises RefutedError, after the result is written, if a guarantee is refuted.
    """
    (asked,) = settings.needed("audit")
    watch = watch or Watch()
    mechanisms = _mechanisms(settings)
    epsilon = settings.value("budget.epsilon")
    epsilons = asked.epsilons or ([] if epsilon is None else [epsilon])
    if asked.curve:
        curve = risk_curve(mechanisms, epsilons or EPSILONS, inputs=asked.inputs, risks=asked.risks)
        watch.say(str(curve))
        if asked.path is not None:
            watch.say(curve.save(asked.path))
        return curve
    if len(mechanisms) != 1 or not epsilons or (len(epsilons) > 1 and not asked.documents):
        raise ConflictError("An audit checks one mechanism at one epsilon; give each once, or ask for a curve.")
    audited: Audit | DocumentAudit
    readers: dict[str, Any] = {}
    if asked.documents:
        audited = audit_documents(
            mechanisms[0], [Budget(value, asked.per) for value in epsilons], asked.documents, asked.delta,
            asked.distance, level=asked.level, length=settings.length.chosen(),
        )  # fmt: skip
        watch.say(str(audited))
    else:
        audited = audit(
            mechanisms[0], epsilons[0], claim=asked.claim, draws=asked.draws, pairs=asked.pairs, level=asked.level,
            words=asked.words,
        )  # fmt: skip
        for line in audited.lines():
            watch.say(line)
        model = asked.model or settings.value("model.path")
        ladder = reader_ladder(
            mechanisms[0], epsilons[0], None if model is None else load_model(model),
            policy=settings.text.policy(),
        )  # fmt: skip
        watch.say(str(ladder))
        readers = {"readers": dataclasses.asdict(ladder)}
    if asked.path is not None:
        files.write_bytes(asked.path, (json.dumps(audited.as_dict() | readers, indent=1) + "\n").encode())
    if audited.refuted:
        raise RefutedError("The audit refuted this; choose another mechanism, or report a fault of ours.")
    return audited


def _mechanisms(settings: Settings) -> Sequence[Mechanism]:
    asked, space = settings.needed("audit", "space")
    own = settings.mechanism
    names = asked.mechanisms or ([] if own is None else [own.name])
    if not names:
        raise UnsetError("audit.mechanisms: this setting is missing; add it.")
    given: dict[str, Any] = pairs("parameter", asked.parameters)
    if not asked.mechanisms and own is not None:
        given = own.parameters | given
    if unknown := sorted(set(given) - {known for name in names for known in parameters(name)}):
        raise UnknownError(
            f"parameter {unknown[0]}: none of these mechanisms has this parameter; correct it or leave it out."
        )
    opened = load_space(space.path)
    return [
        make(name, opened, **{key: value for key, value in given.items() if key in parameters(name)}) for name in names
    ]
