"""The audit that settings ask for, of words or of documents: ``corpusveil audit``."""

from __future__ import annotations

import json
from typing import Any

from corpusveil.audits.document_audit import DocumentAudit, audit_documents
from corpusveil.audits.guarantee_audit import Audit, audit
from corpusveil.budget import Budget
from corpusveil.errors import ConflictError, RefutedError, UnsetError
from corpusveil.mechanisms import Mechanism, make
from corpusveil.pipelines.fields import pairs
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import load_space
from corpusveil.storage import files


def run(settings: Settings, watch: Watch | None = None) -> Audit | DocumentAudit:
    """Do the audit; what ``[audit]`` leaves out is that of ``[mechanism]`` and ``[budget]``.

    Raises RefutedError, after the result is written, if a guarantee is refuted.
    """
    asked = needed(settings.audit, "audit")
    watch = watch or Watch()
    mechanism = _mechanism(settings)
    epsilon = None if settings.budget is None else settings.budget.epsilon
    epsilons = asked.epsilons or ([] if epsilon is None else [epsilon])
    if not epsilons or (len(epsilons) > 1 and not asked.documents):
        raise ConflictError("An audit of words checks a mechanism at one epsilon; give one.")
    audited: Audit | DocumentAudit
    if asked.documents:
        budgets = [Budget(value, asked.per) for value in epsilons]
        audited = audit_documents(mechanism, budgets, asked.documents, length=settings.length.chosen())
        watch.say(str(audited))
    else:
        audited = audit(mechanism, epsilons[0], claim=asked.claim)
        for line in audited.lines():
            watch.say(line)
    if asked.path is not None:
        files.write_bytes(asked.path, (json.dumps(audited.as_dict(), indent=1) + "\n").encode())
    if audited.refuted:
        raise RefutedError("The audit refuted this; choose another mechanism, or report a fault of ours.")
    return audited


def _mechanism(settings: Settings) -> Mechanism:
    asked, space = needed(settings.audit, "audit"), needed(settings.space, "space")
    own, given = settings.mechanism, dict[str, Any](pairs("parameter", asked.parameters))
    if asked.mechanism is not None:
        return make(asked.mechanism, load_space(space.path), **given)
    if own is None:
        raise UnsetError("audit.mechanism: this setting is missing; add it.")
    return make(own.name, load_space(space.path), **own.parameters | given)
