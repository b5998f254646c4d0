"""The audit that settings ask for, of words or of documents: ``corpusveil audit``."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from corpusveil.audits.document_audit import DocumentAudit, audit_documents
from corpusveil.audits.guarantee_audit import Audit, audit
from corpusveil.budget import Budget
from corpusveil.errors import ConflictError, RefutedError
from corpusveil.language.ladder import reader_ladder
from corpusveil.language.model import load_model
from corpusveil.pipelines.resolve import mechanism_of
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.sections import AuditSettings
from corpusveil.pipelines.watch import Watch
from corpusveil.storage import files


def run(settings: Settings, watch: Watch | None = None) -> Audit | DocumentAudit:
    """Do the audit of ``[mechanism]``; an epsilon that ``[audit]`` leaves out is that of ``[budget]``.

    Raises RefutedError, after the result is written, if a guarantee is refuted.
    """
    asked = settings.audit or AuditSettings()
    watch = watch or Watch()
    mechanism = mechanism_of(settings.settled())
    epsilon = None if settings.budget is None else settings.budget.epsilon
    epsilons = asked.epsilons or ([] if epsilon is None else [epsilon])
    if not epsilons or (len(epsilons) > 1 and not asked.documents):
        raise ConflictError("An audit of words checks a mechanism at one epsilon; give one.")
    audited: Audit | DocumentAudit
    readers: dict[str, Any] = {}
    if asked.documents:
        audited = audit_documents(
            mechanism, [Budget(value, asked.per) for value in epsilons], asked.documents, asked.delta,
            asked.distance, level=asked.level, length=settings.length.chosen(),
        )  # fmt: skip
        watch.say(str(audited))
    else:
        audited = audit(mechanism, epsilons[0], claim=asked.claim, level=asked.level)
        for line in audited.lines():
            watch.say(line)
        model = None if settings.model is None else load_model(settings.model.path)
        ladder = reader_ladder(mechanism, epsilons[0], model, policy=settings.text.policy())
        watch.say(str(ladder))
        readers = {"readers": dataclasses.asdict(ladder)}
    if asked.path is not None:
        files.write_bytes(asked.path, (json.dumps(audited.as_dict() | readers, indent=1) + "\n").encode())
    if audited.refuted:
        raise RefutedError("The audit refuted this; choose another mechanism, or report a fault of ours.")
    return audited
