"""The page about a release: its manifest in words, written next to the release, from the manifest alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

from corpusveil.budget.budget import written
from corpusveil.errors import ArtifactError
from corpusveil.ledger.caps import cap_sentences
from corpusveil.storage import files
from corpusveil.transforms.release.manifest import read_manifest
from corpusveil.transforms.release.risk import risk_of


class Part(NamedTuple):
    """A part of a page: a title, sentences, and a table of ``rows`` under the names of its columns."""

    title: str
    lines: Sequence[str] = ()
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def page_of(output: str) -> str:
    """Return the address of a release's page: next to the release, whose folder has data and manifest only."""
    return output.rstrip("/") + ".report.html"


def write_page(output: str) -> None:
    """Write the page of a finished release, unless it exists. Raises UserError if the manifest is damaged."""
    if files.exists(page_of(output)):
        return
    manifest = read_manifest(output)
    try:
        made, budget = manifest["configuration"]["mechanism"]["name"], _budget(manifest["configuration"])
        sizes = f"{manifest['documents']:,} documents, {manifest['tokens']:,} {_counted(manifest)}"
        said = f"{sizes}; mechanism {made} with {budget}. Everything here is in the manifest, and may be published."
        page = render("A privatized corpus, and what it guarantees", said, [*parts_of(manifest)])
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ArtifactError(f"{output}: the manifest is damaged; restore it from a copy of the release.") from None
    files.write_bytes(page_of(output), page.encode())


def render(title: str, intro: str, parts: Sequence[Part]) -> str:
    """Return a page, which has no scripts and fetches nothing."""
    import jinja2  # which workers and previews do not need

    text = (resources.files(__package__) / "page.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(text).render(title=title, intro=intro, parts=parts)


def parts_of(manifest: Mapping[str, Any]) -> Iterator[Part]:
    """Yield what a manifest says, in words."""
    guarantee, configuration = manifest["guarantee"], manifest["configuration"]
    warnings = [manifest["warning"]] if "warning" in manifest else []
    risk, keep = risk_of(manifest), configuration["columns"]["keep"]
    risks = [] if risk is None else [f"{risk.sentence()}. On other text the share differs; it is no guarantee."]
    yield Part("What is guaranteed", [*warnings, *manifest["guarantee_in_words"], *cap_sentences(manifest.get("cap"))])
    claim = f"The published claim is: “{guarantee['claim']}”{'.' if guarantee['holds'] else ', which is not true.'}"
    compared = f"The guarantee compares {guarantee['neighbors']}."
    yield Part("On which conditions", [compared, *guarantee["assumptions"], claim, *risks])
    kept = f"{', '.join(keep)}, outside every guarantee" if keep else "none"
    yield Part("What a reader sees unprotected", [*guarantee["disclosed"], f"Kept columns: {kept}."])
    named = {name: value for name, value in manifest.items() if isinstance(value, str)}
    made = {**configuration, **manifest.get("store", {}), "name in a ledger": manifest["spends"]["name"], **named}
    settings = made | {"budget": _budget(configuration)}
    yield Part("How this release was made", rows=[(name, _shown(value)) for name, value in settings.items()])
    shards = [
        (shard["name"], f"{shard['documents']:,}", f"{shard['tokens']:,}", shard["sha256"])
        for shard in manifest["shards"]
    ]
    yield Part("Files", heads=("file", "documents", _counted(manifest), manifest["checksums"]), rows=shards)


def _counted(manifest: Mapping[str, Any]) -> str:
    return "passages" if "store" in manifest["configuration"] else "tokens"


def _budget(configuration: Mapping[str, Any]) -> str:
    budget = configuration["budget"]
    return f"epsilon {written(budget['epsilon'])} a {budget['per']}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items() if each is not None)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
