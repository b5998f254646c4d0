"""Put what readers recover into the space of ``en``, as the table from which ``--risk`` chooses an epsilon.

    python -m spaces.en.figures

``figures.json`` has what was measured: ``make.py`` writes it, with the trigrams as reader, and ``neural.py`` adds the
gains of a stronger one. The table is in the digest of the space, so another table makes another space: the archive of
words is written with it, and that of the store, whose encoder names the space. Everything else in both stays as it is.
"""

from __future__ import annotations

import io
import json
import math
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import orjson
import pyarrow.parquet as pq

import corpusveil as cv
from corpusveil.mechanisms import Mechanism, make_mechanism
from corpusveil.passages.encoder import mean_vectors
from corpusveil.passages.store import content_digest
from corpusveil.spaces.installed import ARCHIVE
from corpusveil.spaces.risk_table import Recovered, RiskTable
from corpusveil.storage.records import Line, Record
from corpusveil.text.policy import TextPolicy
from corpusveil_evaluate.readers.ngrams.context_risk import precise, reader_of_texts
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from spaces.en.sample import Sample

HERE = Path(__file__).parent
PACKAGE, FIGURES = HERE / "corpusveil_space_en", HERE / "figures.json"
BEFORE_ZIP = (1980, 1, 1, 0, 0, 0)
TRIGRAMS = "the public trigrams"
DIGITS = 6


class Stronger(Record):
    """By how much a stronger ``reader`` recovers more, measured on the first texts of the same sample.

    At the ``epsilons``: what it gains of all words and of content words, and the standard error of the latter, paired
    text by text; ``highest`` of the register of which the trigrams recover most; ``words`` is how many content words.
    ``model`` is a digest of what it reads by.
    """

    reader: Line
    model: Line
    words: list[list[int]]
    epsilons: list[float]
    like: list[list[float]]
    unlike: list[list[float]]
    highest: tuple[tuple[float, float], ...] = ()


class Figures(Record):
    """What a reader with the trigrams recovered of a sample whose SHA-256 is ``text``, and what a stronger one gains.

    At the ``epsilons``: the shares of all words, of content words, and the standard error of the latter. ``highest``:
    the largest share of content words among registers like the model's, and its error; ``registers`` names them.
    """

    text: str
    epsilons: list[float]
    like: list[list[float]]
    unlike: list[list[float]]
    highest: tuple[tuple[float, float], ...] = ()
    registers: tuple[Line, ...] = ()
    stronger: tuple[Stronger, ...] = ()


def measured(
    mechanism: Mechanism, model: LanguageModel, sample: Sample, policy: TextPolicy, epsilons: Sequence[float]
) -> Figures:
    """Return what a reader with a model recovers of a sample at ``epsilons``."""
    kinds = [(sample.like, sample.registers), *([(sample.unlike, ())] if sample.unlike else [])]
    readers = [reader_of_texts(mechanism, model, some, policy, registers=named) for some, named in kinds]
    every = [[precise(reader.read(epsilon)) for epsilon in epsilons] for reader in readers]
    points = [[[read.share, read.content.share, read.content.error] for read in reads] for reads in every]
    highest = [read.highest for read in every[0] if read.highest is not None]
    return Figures(
        text=sample.digest, epsilons=list(epsilons), like=points[0], unlike=points[1] if len(points) > 1 else [],
        highest=tuple((share, error) for _, share, error in highest),
        registers=tuple(register for register, *_ in highest),
    )  # fmt: skip


def read_figures(data: bytes) -> dict[str, Figures]:
    """Return the figures of a file by ``MECHANISM STOP_WORDS``."""
    return {name: Figures.model_validate_json(orjson.dumps(value)) for name, value in orjson.loads(data).items()}


def write_figures(figures: Mapping[str, Figures], path: Path) -> None:
    path.write_text(json.dumps({name: each.as_dict() for name, each in figures.items()}) + "\n")


def table(space: cv.Space, figures: Mapping[str, Figures]) -> RiskTable:
    """Return the table: of each mechanism the text like the model's, its register that fares worst, and other text."""
    recovered = []
    for name, each in figures.items():
        mechanism, stop_words = name.split()
        stronger = each.stronger[0] if each.stronger else None
        worst = max(set(each.registers), key=each.registers.count)
        texts = (
            (f"held-out text of the kinds that were counted (sha256 {each.text[:12]})", [row[1:] for row in each.like],
             [] if stronger is None else [row[1:] for row in stronger.like]),
            (f"its {worst}s", each.highest, [] if stronger is None else stronger.highest),
            ("news, speeches and how-to pages, which were not counted", [row[1:] for row in each.unlike],
             [] if stronger is None else [row[1:] for row in stronger.unlike]),
        )  # fmt: skip
        law = make_mechanism(mechanism, space)
        for text, points, gains in texts:
            recovered.append(
                Recovered(
                    mechanism=mechanism,
                    parameters=law.parameters(),
                    stop_words=stop_words,
                    text=text,
                    reader=TRIGRAMS if stronger is None else stronger.reader,
                    points=_points(law, each.epsilons, points, [] if stronger is None else stronger.epsilons, gains),
                )
            )
    return RiskTable(recovered=recovered)


def _points(
    law: Mechanism, epsilons: Sequence[float], points: Sequence[Sequence[float]], more: Sequence[float],
    gains: Sequence[Sequence[float]],
) -> list[tuple[float, float, float]]:  # fmt: skip
    """Return epsilon, share and error at the epsilons of the figures and of the gains; no share below the law's."""
    made = []
    for epsilon in sorted({*epsilons, *more}):
        share, error = (_at(epsilon, epsilons, column) for column in np.transpose(points))
        if gains:
            gain, of_gain = (_at(epsilon, more, column) for column in np.transpose(gains))
            share, error = share + max(0.0, gain), math.hypot(error, of_gain)
        # What is written is right as often as words stay: a sample may say a little less.
        stays = math.ceil(10**DIGITS * law.retention(epsilon)) / 10**DIGITS
        made.append((epsilon, min(1.0, max(round(share, DIGITS), stays)), round(error, DIGITS)))
    return made


def _at(epsilon: float, epsilons: Sequence[float], column: Sequence[float]) -> float:
    return float(np.interp(np.log2(epsilon), np.log2(epsilons), column))


def repack(path: Path, change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> None:
    """Write an archive again with other files, and its hash; files that stay are packed as they were."""
    from spaces.en.make import hashed

    with zipfile.ZipFile(path) as old:
        methods = {info.filename: info.compress_type for info in old.infolist()}
        kept = change({name: old.read(name) for name in methods})
    with zipfile.ZipFile(path, "w") as new:
        for name, content in kept.items():
            new.writestr(zipfile.ZipInfo(name, BEFORE_ZIP), content, methods.get(name, zipfile.ZIP_LZMA))
    hashed(path)


def with_space(contents: dict[str, bytes], change: Callable[[cv.Space], cv.Space]) -> dict[str, bytes]:
    """Return the files of the archive of words with the space that ``change`` makes of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name in [name for name in contents if name.startswith("space/")]:
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(contents.pop(name))
        space = cv.load_space(f"{folder}/space")
        made = change(space).save(f"{folder}/with")
        files = {f"space/{file.name}": file.read_bytes() for file in sorted(Path(made.url or "").iterdir())}
    return files | {name: content for name, content in contents.items() if name != FIGURES.name}


def relabelled(space: cv.Space) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    """Return what names a space, of the same words and vectors, in the files of the archive of a store."""

    def change(contents: dict[str, bytes]) -> dict[str, bytes]:
        texts = pq.read_table(io.BytesIO(contents["store/texts.parquet"]))["text"].combine_chunks()
        vectors, info = np.load(io.BytesIO(contents["store/vectors.npy"])), json.loads(contents["store/_artifact.json"])
        info["space"]["digest"], info["encoder"] = space.digest, mean_vectors(space).name
        info["digest"] = content_digest(texts, vectors, info["encoder"])
        return contents | {"store/_artifact.json": (json.dumps(info, indent=1, ensure_ascii=False) + "\n").encode()}

    return change


def main() -> None:
    def with_table(space: cv.Space) -> cv.Space:
        return space.with_risk(table(space, read_figures(FIGURES.read_bytes())))

    repack(PACKAGE / ARCHIVE, lambda contents: with_space(contents, with_table))
    repack(PACKAGE / "store" / ARCHIVE, relabelled(cv.load_space("space://en")))


if __name__ == "__main__":
    main()
