"""What a catalog of data sets shows of a release, from its manifest alone: a card for the Hub, and Croissant."""

from __future__ import annotations

import hashlib
from typing import Any

from corpusveil.budget.budget import written
from corpusveil.display import several
from corpusveil.errors import listed
from corpusveil.storage import files, formats
from corpusveil.storage.inputs import Address
from corpusveil.transforms.release.manifest import MANIFEST, Manifest, read_manifest

_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B")
"""The Hub's categories of size, for numbers of three digits or fewer, of four, and so on."""
_OWN = (
    "arrayShape citeAs column containedIn equivalentProperty extract field fileProperty fileObject fileSet format "
    "includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace "
    "samplingRate separator source subField transform"
)
_CONTEXT = {
    "@language": "en", "@vocab": "https://schema.org/", "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/", "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/", "sc": "https://schema.org/", "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "examples": {"@id": "cr:examples", "@type": "@json"},
    "description": {"@container": "@language"}, "name": {"@container": "@language"},
    **{name: f"cr:{name}" for name in _OWN.split()},
}  # fmt: skip
"""The standard context of Croissant 1.1, which readers compare with."""


def dataset_card(release: Address) -> str:
    """Return a card (README.md) for the Hugging Face Hub of a finished release, from its manifest alone.

    It begins with what the Hub reads (YAML), and says what is guaranteed and what is disclosed. Raises UserError if
    there is no manifest at the address, or if it is damaged.
    """
    manifest = Manifest.model_validate(read_manifest(files.as_text(release)))
    size = _SIZES[min(max(len(str(manifest.documents)) - 3, 0), len(_SIZES) - 1)]
    lines = [
        "---", "pretty_name: A privatized corpus", "size_categories:", f"- {size}", "tags:", "- text",
        "- differential-privacy", "configs:", "- config_name: default", "  data_files: data/part-*", "---", "",
        "# A privatized corpus", "", *(f"**{line}**\n" for line in [manifest.warning] if line), _size(manifest), "",
        "## What is guaranteed", "", *(f"- {line}" for line in manifest.guarantee_in_words), "",
        "## What a reader sees unprotected", "", *(f"- {line}" for line in _unprotected(manifest)), "",
        f"Release {manifest.spends.name} of corpusveil. `{MANIFEST}` has every condition and the files' checksums.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def croissant(release: Address) -> dict[str, Any]:
    """Return the metadata (croissant.json) of a finished release in Croissant 1.1, from its manifest alone.

    Its record set has the column with the text; a manifest does not say which types kept columns have. What a manifest
    does not know (``license``, ``url``, ``creator``, ``datePublished``) is yours to add. Raises as ``dataset_card``.
    """
    manifest = Manifest.model_validate(read_manifest(files.as_text(release)))
    digest = hashlib.sha256(files.read_bytes(files.join(files.as_text(release), MANIFEST))).hexdigest()
    suffix = formats.form_of(manifest.shards[0].name)
    kinds = {".json": "application/jsonlines", ".parq": "application/x-parquet", ".csv": "text/csv"}
    media = next((kind for ending, kind in kinds.items() if suffix.startswith(ending)), "text/plain")
    text = manifest.configuration.columns.text
    column = {"fileProperty": "lines"} if media == "text/plain" else {"column": text}
    guaranteed = [manifest.warning] if manifest.warning else []
    guaranteed += [_size(manifest), "Guaranteed:", *manifest.guarantee_in_words]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": f"release-{manifest.spends.name}",
        "description": " ".join([*guaranteed, "Unprotected:", "; ".join(_unprotected(manifest)) + "."]),
        "distribution": [
            {"@type": "cr:FileObject", "@id": MANIFEST, "name": MANIFEST, "contentUrl": MANIFEST,
             "encodingFormat": "application/json", "sha256": digest},
            {"@type": "cr:FileSet", "@id": "data", "name": "data", "encodingFormat": media,
             "includes": f"data/part-*{suffix}"},
        ],
        "recordSet": [
            {"@type": "cr:RecordSet", "@id": "documents", "name": "documents", "field": [
                {"@type": "cr:Field", "@id": "documents/text", "name": "text", "description": "The private text.",
                 "dataType": "sc:Text", "source": {"fileSet": {"@id": "data"}, "extract": column}},
            ]},
        ],
    }  # fmt: skip


def _size(manifest: Manifest) -> str:
    budget, mechanism = manifest.configuration.budget, manifest.configuration.mechanism.name
    made = f"Words were replaced by the mechanism {mechanism} with epsilon {written(budget.epsilon)} a {budget.per}."
    return f"{several(manifest.documents, 'document')}, {several(manifest.tokens, 'token')}. {made}"


def _unprotected(manifest: Manifest) -> list[str]:
    """Return what the release discloses, and the columns that it keeps in the clear."""
    keep = manifest.configuration.columns.keep
    kept = "every other column" if keep == ["*"] else listed(keep)
    return [*manifest.guarantee.disclosed, *([f"kept columns, outside every guarantee: {kept}"] if keep else [])]
