"""Presidio as a recognizer: imported when it is made, and no requirement, since it brings spaCy and much else."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from corpusveil.errors import PackageError
from corpusveil.text.spans import Declared, Function, OfFunction

_KINDS = {
    "person": "name", "email_address": "contact", "url": "contact", "phone_number": "phone", "credit_card": "card",
    "iban_code": "iban", "ip_address": "ip", "us_ssn": "national_id", "us_itin": "national_id", "uk_nhs": "national_id",
}  # fmt: skip
"""The kinds that the built-in rules have, too; every other entity is a kind under its own name, in small letters."""


def presidio() -> Function:
    """Return Presidio's analyzer for English, with the spaCy model that is installed or its patterns only."""
    import spacy
    import tldextract
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    models = sorted(model for model in spacy.util.get_installed_models() if model.startswith("en_core_web_"))
    engine: Any = SpacyNlpEngine([{"lang_code": "en", "model_name": models[0] if models else "blank"}])
    engine.nlp = {"en": spacy.load(models[0]) if models else spacy.blank("en")}  # it would fetch a model otherwise
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=())  # nor a list of domains
    analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])

    def analyze(texts: list[str]) -> list[list[tuple[int, int, str]]]:
        answers = ([(s.start, s.end, s.entity_type.lower()) for s in analyzer.analyze(text, "en")] for text in texts)
        return [[(start, end, _KINDS.get(entity, entity)) for start, end, entity in answer] for answer in answers]

    return analyze


def _versions() -> str:
    try:
        return ", ".join(f"{package} {metadata.version(package)}" for package in ("presidio-analyzer", "spacy"))
    except metadata.PackageNotFoundError:
        raise PackageError("The recognizer presidio needs a package: pip install presidio-analyzer.") from None


RECOGNIZER = Declared(lambda _: OfFunction("presidio", presidio()), f"1, {_versions()}")
