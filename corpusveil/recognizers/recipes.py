"""Presidio and GLiNER as recognizers. Both are optional, and imported when a recognizer is made."""

from __future__ import annotations

import re
from typing import Any

from corpusveil.errors import PackageError
from corpusveil.text.spans import Function

_KINDS = {
    "person": "name", "email": "contact", "email_address": "contact", "url": "contact", "phone_number": "phone",
    "credit_card": "card", "iban_code": "iban", "ip_address": "ip", "us_ssn": "national_id", "uk_nhs": "national_id",
}  # fmt: skip
"""The kinds that the built-in rules have, too; every other entity is a kind under its own name, in small letters."""


def _kind(entity: str) -> str:
    name = re.sub("[^a-z0-9]+", "_", entity.lower()).strip("_")[:32]
    return _KINDS.get(name, name)


def presidio() -> Function:
    """Return Presidio's analyzer for English, with the spaCy model that is installed or its patterns only."""
    try:
        import spacy
        import tldextract
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import SpacyNlpEngine
    except ImportError:
        raise PackageError("The recognizer 'presidio' needs packages: pip install 'corpusveil[presidio]'.") from None
    models = sorted(model for model in spacy.util.get_installed_models() if model.startswith("en_core_web_"))
    engine: Any = SpacyNlpEngine([{"lang_code": "en", "model_name": models[0] if models else "blank"}])
    engine.nlp = {"en": spacy.load(models[0]) if models else spacy.blank("en")}  # it would fetch a model otherwise
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=())  # nor a list of domains
    analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])

    def analyze(texts: list[str]) -> list[list[tuple[int, int, str]]]:
        answers = (analyzer.analyze(text, "en") for text in texts)
        return [[(span.start, span.end, _kind(span.entity_type)) for span in answer] for answer in answers]

    return analyze


def gliner(
    model: str = "urchade/gliner_multi_pii-v1", labels: tuple[str, ...] = ("person", "phone number")
) -> Function:
    """Return a GLiNER model that finds entities with these labels; fetches the model unless it is in the cache."""
    try:
        from gliner import GLiNER
    except ImportError:
        raise PackageError("The recognizer 'gliner' needs a package: pip install 'corpusveil[gliner]'.") from None
    network = GLiNER.from_pretrained(model)

    def predict(texts: list[str]) -> list[list[tuple[int, int, str]]]:
        answers = (network.predict_entities(text, list(labels)) for text in texts)
        return [[(span["start"], span["end"], _kind(span["label"])) for span in answer] for answer in answers]

    return predict
