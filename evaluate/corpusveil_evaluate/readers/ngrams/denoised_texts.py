"""What a reader takes for the originals of texts that were released, and of the whole folder of a release.

Only the release and public artifacts are read, so the guarantee of the release holds, and nothing is spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from corpusveil.budget import Budget
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import ArtifactError, SettingError
from corpusveil.mechanisms import make_mechanism
from corpusveil.spaces import Space
from corpusveil.storage import files
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.reading import reading
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import plan
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release.keyed_release import AnyRelease
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.release.verification import check_shard, manifest_of
from corpusveil_evaluate.readers.ngrams.denoise import MARGIN, Denoiser, Search
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.readers.ngrams.modelling import model_of_space


def denoise(
    texts: Sequence[str], release: AnyRelease, model: LanguageModel | None = None, search: Search | None = None
) -> list[str]:
    """Return the likeliest originals of texts that a release by words drew, as any reader can: its key is not read.

    ``model`` is by default that of the package of the release's space. Without a ``search``, rare words stay within a
    margin of ``MARGIN`` nats.
    """
    if not isinstance(release, Release):
        raise SettingError("denoise: a passage is public text, of which no word was drawn, so none can be denoised.")
    model = model_of_space(release.mechanism.space) if model is None else model
    if model is None:
        raise SettingError("model: the search needs a language model of public text; give one.")
    denoiser = Denoiser(
        release.mechanism, release.budget, release.policy, model, search or Search(margin=MARGIN), release.collocations,
        spans=release.spans is not None,
    )  # fmt: skip
    return denoiser.readable(texts)


def denoise_release(
    release: str, output: str, *, space: Space, model: LanguageModel, collocations: Collocations | None = None,
    search: Search | None = None,
) -> int:  # fmt: skip
    """Write the likeliest originals of a release into a file ``output``; return how many.

    The file has a JSON line with a ``text`` for each row of the release in the folder ``release``, in its order. Pass
    the ``space`` and ``collocations`` that the release was made with. Raises UserError for others, for a release that
    is incomplete, and for one whose law a reader does not know.
    """
    release = files.absolute(release)
    source = manifest_of(release)
    read_as = _reading_of(source, release, space, collocations)
    denoiser = Denoiser(**read_as, model=model, search=search or Search(margin=MARGIN))
    read = source["configuration"]["columns"]
    columns = Columns(read["text"], separator=read.get("separator", "comma"))
    urls = [files.join(release, shard["name"]) for shard in source["shards"]]
    written = 0
    with files.open_write(files.absolute(output)) as file:
        for task in plan(find_shards(urls, files.join(release, "data")), None, None):
            check_shard(release, source, task.shard)
            with reading(task, columns) as shard:
                for batch in shard.batches:
                    texts = denoiser.readable(batch.texts.to_pylist())
                    file.write(b"".join(orjson.dumps({"text": text}) + b"\n" for text in texts))
                    written += len(texts)
    return written


def _reading_of(
    source: Mapping[str, Any], where: str, space: Space, collocations: Collocations | None
) -> dict[str, Any]:
    """Return the fields of a ``Denoiser`` that a release decides. Raises UserError for other artifacts than its own."""
    configured = source["configuration"]
    if space.digest != configured.get("space"):
        raise SettingError(f"{where}: this release was not made with this space; give that of the release.")
    if configured.get("collocations") != (None if collocations is None else collocations.digest):
        raise SettingError(f"{where}: this release was not made with these collocations; give those of the release.")
    named = dict(configured["mechanism"])
    try:
        mechanism = make_mechanism(named.pop("name"), space, **named)
        budget, policy = Budget(**configured["budget"]), TextPolicy(**configured["text"])
    except (TypeError, ValueError):
        raise ArtifactError(
            f"{where}: the manifest is damaged or was written by another version of corpusveil; restore it."
        ) from None
    return {
        "mechanism": mechanism, "budget": budget, "policy": policy, "collocations": collocations,
        "tokenizer_version": configured["tokenizer"], "spans": "spans" in configured,
    }  # fmt: skip
