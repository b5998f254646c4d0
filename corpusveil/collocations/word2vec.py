"""Word vectors of tokens by gensim's word2vec, from a spool of bounded size, with checkpoints.

gensim trains fastest from one plain local file (``corpus_file``). Shards are therefore spooled to a local file of at
most ``spool_bytes``; larger corpora are trained segment by segment in each epoch, with a learning rate that falls
linearly from ``alpha`` to ``min_alpha`` over all segments, as in one call. Between segments and epochs the state is
kept, at most once a minute. With one worker the result depends only on the tokens and the parameters, even after an
interruption.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import hashlib
import io
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from corpusveil.choices import SPOOL_BYTES
from corpusveil.collocations.public_texts import of_gensim
from corpusveil.errors import ArtefactError, BadRecordError, BadValueError, DataError, InUseError, UserError
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files
from corpusveil.storage.compression import chunks, codec_of
from corpusveil.storage.failures import BROKEN_ARRAY
from corpusveil.storage.forms import split
from corpusveil.storage.records import Record, Records

CHUNK_BYTES = 4 << 20
STATE = "state.json"

OnProgress = Callable[[float, float], None]
"""Called with the finished share, 0 to 1, and the words per second."""


@dataclass(frozen=True, slots=True)
class Training:
    """Parameters of word2vec under gensim's names; the defaults are gensim's, but for 300 dimensions.

    ``sg`` 1 is skip-gram, 0 CBOW; ``workers`` 1 makes training deterministic. Raises UserError for values out of range.
    """

    dimensions: int = 300
    window: int = 5
    negative: int = 5
    hs: int = 0
    epochs: int = 5
    min_count: int = 5
    sg: int = 0
    sample: float = 1e-3
    alpha: float = 0.025
    min_alpha: float = 1e-4
    ns_exponent: float = 0.75
    cbow_mean: int = 1
    seed: int = 1
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("dimensions", "window", "negative", "epochs", "min_count", "seed", "workers"):
            least = 0 if name in {"negative", "seed"} else 1
            if getattr(self, name) < least:
                raise BadValueError(f"{name} = {getattr(self, name)}: give at least {least}.")
        for name in ("hs", "sg", "cbow_mean"):
            if getattr(self, name) not in (0, 1):
                raise BadValueError(f"{name} = {getattr(self, name)}: give 0 or 1.")
        if not self.negative and not self.hs:
            raise BadValueError("negative = 0 and hs = 0: nothing would be trained; set either.")
        if not 0 < self.min_alpha <= self.alpha < 1 or not 0 <= self.sample < 1:
            raise BadValueError(
                "min_alpha, alpha, sample: these need 0 < min_alpha <= alpha < 1 and 0 <= sample < 1; correct them."
            )


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the tokens in a plain local file."""

    path: str
    lines: int
    words: int


def _pieces(shards: Sequence[str]) -> Iterator[list[bytes]]:
    """Yield the lines of all shards, some at a time."""
    for shard in shards:
        with files.open_read(shard) as file:
            yield from split(chunks(file, shard, codec_of(shard)), shard)


def count_tokens(shards: Sequence[str]) -> dict[str, int]:
    """Count the tokens of LineSentence files. Raises UserError for bytes that are not UTF-8."""
    counts: collections.Counter[bytes] = collections.Counter()
    for lines in _pieces(shards):
        counts.update(b"\n".join(lines).split())
    try:
        return {token.decode(): count for token, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))}
    except UnicodeDecodeError:
        raise ArtefactError(f"{shards[0]}: the tokens are not valid UTF-8; tokenize the corpus again.") from None


def segments(shards: Sequence[str], folder: str, spool_bytes: int) -> Iterator[Segment]:
    """Yield the tokens in parts of at most about ``spool_bytes``, all in the same local file."""
    path = str(Path(folder, "segment.txt"))
    pieces = _pieces(shards)
    more = True
    while more:
        more = False
        lines = words = size = 0
        with open(path, "wb") as file:
            for piece in pieces:
                sound = [line for line in piece if line.strip()]
                data = b"".join(line + b"\n" for line in sound)
                file.write(data)
                lines += len(sound)
                words += len(data.split())
                size += len(data)
                if size >= spool_bytes:
                    more = True
                    break
        if lines:
            yield Segment(path, lines, words)


class _Progress(logging.Handler):
    """Forwards gensim's progress: its log records have the finished share of the epoch and the words per second."""

    def __init__(self, watch: OnProgress, first: float, share: float) -> None:
        super().__init__(logging.INFO)
        self._watch, self._first, self._share = watch, first, share

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.msg, str) and "PROGRESS" in record.msg and isinstance(record.args, tuple):
            _, percent, rate, *_ = record.args
            self._watch(self._first + self._share * min(float(str(percent)), 100.0) / 100, float(str(rate)))


@contextlib.contextmanager
def _told(watch: OnProgress | None, first: float, share: float) -> Iterator[None]:
    logger = logging.getLogger("gensim.models.word2vec")
    before = logger.level, logger.propagate
    handler = _Progress(watch or (lambda _share, _rate: None), first, share)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def _model(training: Training, counts: dict[str, int]) -> Any:
    options = dataclasses.asdict(training)
    model = of_gensim("models").Word2Vec(vector_size=options.pop("dimensions"), **options)
    with _told(None, 0, 0):
        kept = {token: count for token, count in counts.items() if count >= training.min_count}
        if len(kept) < 2:
            raise DataError(
                f"min_count = {training.min_count}: {len(kept)} tokens occur this often, which is too few; give "
                "a smaller min_count or more text."
            )
        model.build_vocab_from_freq(dict(counts))
    return model


def train(
    shards: Sequence[str],
    training: Training,
    checkpoint: Checkpoint,
    *,
    counts: dict[str, int] | None = None,
    spool_bytes: int = SPOOL_BYTES,
    watch: OnProgress | None = None,
) -> tuple[Vectors, dict[str, Any]]:
    """Train on LineSentence files (plain, ``.gz`` or ``.zst``) in their order.

    ``counts`` is how often each token occurs (counted first when not given), sorted. Returns the vectors, float32 [V,
    d], by falling count, and figures: tokens, lines, epochs, seconds, words per second. Raises UserError if nothing is
    left to train on.
    """
    counted = count_tokens(shards) if counts is None else counts
    total = sum(counted.values())
    if not total:
        raise DataError("There are no tokens to train on; tokenize a corpus with text.")
    model = _model(training, counted)
    epoch, segment = checkpoint.restore(model)
    began, trained, lines = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory(prefix="corpusveil-train-") as folder:
        whole: Segment | None = None  # all of it, when it is one segment
        while epoch < training.epochs:
            parts = [whole] if whole is not None else segments(shards, folder, spool_bytes)
            seen = number = 0
            for number, part in enumerate(parts, 1):
                first, share = (epoch + seen / total) / training.epochs, part.words / total / training.epochs
                seen += part.words
                if number <= segment:
                    continue  # done before the interruption
                with _told(watch, first, share):
                    trained += _pass(model, part, training, first, share)
                lines = part.lines if number == 1 else lines + part.lines
                if seen < total:
                    checkpoint.offer(model, epoch, number)
                else:
                    whole = part if number == 1 else None
            if seen != total:
                raise ArtefactError(f"{seen:,} tokens were read and {total:,} were counted; tokenize the corpus again.")
            epoch, segment = epoch + 1, 0
            checkpoint.offer(model, epoch, 0)
    seconds = time.monotonic() - began
    words = list(model.wv.index_to_key)
    counts_kept = np.array([model.wv.get_vecattr(word, "count") for word in words], dtype=np.int64)
    figures = {"tokens": total, "epochs": training.epochs, "seconds": round(seconds, 3), "trained": trained}
    return Vectors(words, model.wv.vectors.astype(np.float32, copy=False), "word2vec", counts_kept), figures


def _pass(model: Any, part: Segment, training: Training, first: float, share: float) -> int:
    """Train once over a segment; return how many words took part."""
    fall = training.alpha - training.min_alpha
    start, end = training.alpha - fall * first, training.alpha - fall * (first + share)
    trained, _ = model.train(
        corpus_file=part.path, total_examples=part.lines, total_words=part.words,
        epochs=1, start_alpha=start, end_alpha=end, report_delay=1.0,
    )  # fmt: skip
    return int(trained)


class TrainingState(Record):
    """``state.json``: the arrays of a model by their digests, and NumPy's random state; ``name`` is a part of paths."""

    mark: str
    epoch: int
    segment: int
    name: Annotated[str, Field(pattern="^epoch-[0-9]{4,9}-segment-[0-9]{6,12}$")]
    arrays: dict[Annotated[str, Field(pattern="^(vectors|syn1neg|syn1)$")], str]
    random: tuple[str, list[int], int, int, float]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with the arrays of a model and, written last, their description.

    ``mark`` covers everything that decides the result: another training does not resume from this state. ``every`` is
    the number of seconds of work that may be lost: ``offer`` keeps the state only after this time.
    """

    url: str
    mark: str
    every: float = 60.0
    _kept: float = field(default_factory=time.monotonic, init=False, repr=False, compare=False)

    def offer(self, model: Any, epoch: int, segment: int) -> None:
        """Keep the state if the last one, or the beginning, is ``every`` seconds ago."""
        if time.monotonic() - self._kept >= self.every:
            self.keep(model, epoch, segment)
            object.__setattr__(self, "_kept", time.monotonic())

    def keep(self, model: Any, epoch: int, segment: int) -> None:
        """Keep the state after ``segment`` segments of ``epoch`` whole epochs, and remove the one before."""
        before = self._state()
        name = f"epoch-{epoch:04d}-segment-{segment:06d}"
        digests = {}
        for part, array in _arrays(model).items():
            with files.open_write(files.join(self.url, f"{name}.{part}.npy")) as file:
                np.save(file, array, allow_pickle=False)
            digests[part] = hashlib.sha256(array.tobytes()).hexdigest()
        kind, keys, position, has_gauss, cached = model.random.get_state()
        random = (kind, keys.tolist(), position, has_gauss, cached)
        state = TrainingState(mark=self.mark, epoch=epoch, segment=segment, name=name, arrays=digests, random=random)
        self._records.write(STATE, state)
        if before is not None and before.name != name:
            self._remove(before)

    def restore(self, model: Any) -> tuple[int, int]:
        """Load the state into a model with its vocabulary; return whole epochs, and segments of the next epoch."""
        state = self._state()
        if state is None:
            return 0, 0
        if state.mark != self.mark:
            raise InUseError(
                f"{self.url}: this is the state of another training; finish that training, remove this state, or "
                "choose another output."
            )
        for part, array in _arrays(model).items():
            address = files.join(self.url, f"{state.name}.{part}.npy")
            try:
                kept = np.load(io.BytesIO(files.read_bytes(address)), allow_pickle=False)
            except BROKEN_ARRAY:
                raise self._damaged() from None
            if (
                kept.dtype != array.dtype
                or kept.shape != array.shape
                or hashlib.sha256(kept.tobytes()).hexdigest() != state.arrays.get(part)
            ):
                raise BadRecordError(
                    f"{address}: this state of a training is damaged; remove its folder and train again."
                )
            array[:] = kept
        kind, keys, position, has_gauss, cached = state.random
        try:
            model.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
        except (ValueError, TypeError, LookupError, OverflowError):
            raise self._damaged() from None
        return state.epoch, state.segment

    def remove(self) -> None:
        """Remove the state, once the vectors are saved."""
        state = self._state()
        if state is not None:
            files.remove(files.join(self.url, STATE))
            self._remove(state)

    @property
    def _records(self) -> Records:
        return Records(self.url, private=False)

    def _state(self) -> TrainingState | None:
        try:
            return self._records.read(STATE, TrainingState)
        except BadRecordError:
            raise self._damaged() from None

    def _damaged(self) -> UserError:
        return BadRecordError(f"{self.url}: this state of a training is damaged; remove it and train again.")

    def _remove(self, state: TrainingState) -> None:
        for part in state.arrays:
            files.remove(files.join(self.url, f"{state.name}.{part}.npy"))


def _arrays(model: Any) -> dict[str, Any]:
    """Return the arrays that training changes."""
    arrays = {"vectors": model.wv.vectors}
    if model.negative:
        arrays["syn1neg"] = model.syn1neg
    if model.hs:
        arrays["syn1"] = model.syn1
    return arrays
