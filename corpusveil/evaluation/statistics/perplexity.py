"""Perplexity of texts, before and after: by a Kneser-Ney model, and by causal models where some are given.

The interpolated Kneser-Ney model of order 3 is made of texts or of ``corpusveil count``. Its events are the words,
lower-cased, of the vocabulary, and ``<unk>`` for all others; numbers, marks and ends of sentences are not events, and
break the context as in counts. A word at the beginning of such a run is predicted without context. Only perplexities by
the same model are comparable: another vocabulary is another set of events. A causal model is read from a folder on this
machine, GPT-2 in the study of collocations.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from corpusveil.collocations import artifact
from corpusveil.collocations.ngrams import NgramCounter, merge_all, unpacked
from corpusveil.errors import DataError, FormatError, PackageError, below_least, no_causal_model
from corpusveil.evaluation.matching import spread
from corpusveil.evaluation.statistics.encoders import NEEDS_EXTRA, offline
from corpusveil.evaluation.statistics.statistic import Evidence, Reading, register
from corpusveil.evaluation.terms import batches, check_texts, count_words, tokenizer_of
from corpusveil.language.fixed import ONE
from corpusveil.language.model import LanguageModel, load_model
from corpusveil.language.modelling import model_of, model_of_counts, range_of
from corpusveil.spaces.vocabulary import Vocabulary
from corpusveil.storage.artifacts import described
from corpusveil.text.classes import WORD
from corpusveil.text.sentences import consecutive
from corpusveil.text.tokens import Tokenizer

ORDER = 3
UNKNOWN_WORD = "<unk>"


@dataclass(frozen=True, slots=True)
class Perplexity:
    """``value`` is ``exp`` of the mean of -ln P over ``words`` words, ``unknown`` of which are ``<unk>``."""

    value: float
    words: int
    unknown: int


@dataclass(frozen=True, slots=True)
class KneserNey:
    """A model (``language/model.py``) with a reader of texts."""

    model: LanguageModel
    _tokenizer: Tokenizer

    @classmethod
    def of_texts(cls, texts: Sequence[str], min_count: int = 1) -> Self:
        """Count texts, as ``corpusveil count`` does, and smooth. Raises UserError where no word occurs often enough."""
        if min_count < 1:
            raise below_least("min_count", min_count, 1)
        vocabulary, tokens = count_words(check_texts(texts), min_count=min_count)
        counter, tokenizer = NgramCounter(len(vocabulary), ORDER), tokenizer_of(vocabulary)
        runs = [run for some in batches(texts, tokenizer) for run in counter.add(*consecutive(some, over_hyphens=True))]
        keys, counts = merge_all([*runs, counter.finish()])
        lengths, ids = unpacked(keys[counts >= min_count], ORDER)
        counts = counts[counts >= min_count]
        two, three = ((ids[lengths == n, :n], counts[lengths == n]) for n in (2, 3))
        if not len(vocabulary):
            raise DataError(f"No word occurs {min_count} times, so there is nothing to predict; give more text.")
        return cls(
            model_of(vocabulary, range_of(*two, *three), min_count, tokens, artifact.ReadingOptions.by("split")),
            tokenizer,
        )

    @classmethod
    def of_counts(cls, url: str) -> Self:
        """Open the output of ``corpusveil model``, or smooth that of ``corpusveil count``.

        Raises UserError if there are no counts, or no counts of trigrams.
        """
        description = described(url)
        saved = description is not None and description.kind == "model"
        model = load_model(url) if saved else model_of_counts(url)
        return cls(model, tokenizer_of(model.vocabulary))

    @property
    def vocabulary(self) -> Vocabulary:
        return self.model.vocabulary

    def perplexity(self, texts: Sequence[str]) -> Perplexity:
        """Return the perplexity of all texts together, a word. Raises UserError where they have no words."""
        sums, words, unknown = self._scores(texts)
        if not words:
            raise DataError("The texts have no words, so they have no perplexity; give texts with words.")
        return Perplexity(float(np.exp(-sums.sum() / words)), words, unknown)

    def _scores(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.float64], int, int]:
        """Return the log-probability of each text, float64 [D], nats, and the number of words and of unknown ones."""
        sums: list[npt.NDArray[np.float64]] = [np.empty(0)]
        words = unknown = 0
        for some in batches(check_texts(texts), self._tokenizer):
            tokens, ends = consecutive(some, over_hyphens=self.model.reading.over_hyphens)
            is_word = tokens.classes == WORD
            follows = np.zeros(len(tokens), np.bool_)
            follows[1:] = ~ends[:-1]
            ids = np.where(is_word, tokens.ids, -1)
            last = np.where(follows, np.roll(ids, 1), -1)
            before = np.where(last >= 0, np.roll(last, 1), -1)
            wanted = np.where(ids[is_word] < 0, self.model.unknown, ids[is_word]).astype(np.int32)
            logs = np.zeros(len(tokens))
            logs[is_word] = self.model.score(before[is_word], last[is_word], wanted) / ONE
            text = np.repeat(np.arange(tokens.offsets.size - 1), np.diff(tokens.offsets))
            sums.append(np.bincount(text, logs, tokens.offsets.size - 1).astype(np.float64))
            words += wanted.size
            unknown += int((wanted == self.model.unknown).sum())
        return np.concatenate(sums), words, unknown


LONGEST = 1024
"""The most tokens of a text, if the model does not state its input size."""
AT_ONCE = 2048
"""Tokens per batch: 400 MB of logits for GPT-2."""


@dataclass(frozen=True, slots=True)
class CausalPerplexity:
    """``mean`` is that of the texts' perplexities (as in the study); ``pooled`` that of all tokens together.

    Both are per token of the model's own tokenizer. ``skipped`` of ``texts`` have no token to predict; ``cut`` are
    longer than the model's input, and counted up to there.
    """

    mean: float
    pooled: float
    texts: int
    skipped: int
    cut: int


def causal_perplexity(texts: Sequence[str], model_path: str) -> CausalPerplexity:
    """Return the perplexity of texts under the causal model in the folder ``model_path``, on the processor.

    Each text begins with the tokenizer's begin-of-text token if it has one, so that the first token counts; otherwise
    the first token is context only. Raises UserError without the extra, without a model, and if no text has a token to
    predict.
    """
    check_texts(texts)
    model, tokenizer = _load(model_path)
    begin = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    config = model.config
    longest = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or LONGEST
    rows = [begin + tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] for text in texts]
    kept = [row[:longest] for row in rows if len(row) > 1]
    if not kept:
        raise DataError("No text has a token to predict, so there is no perplexity; give longer texts.")
    sums, sizes = np.empty(len(kept)), np.array([len(row) - 1 for row in kept])
    for some in _batches(sizes):
        sums[some] = _negative_logs(model, [kept[k] for k in some])
    cut = sum(len(row) > longest for row in rows)
    return CausalPerplexity(
        float(np.exp(sums / sizes).mean()),
        float(np.exp(sums.sum() / sizes.sum())),
        len(rows),
        len(rows) - len(kept),
        cut,
    )


def _load(model_path: str) -> tuple[Any, Any]:
    if not os.path.isdir(model_path):
        raise no_causal_model(model_path)
    try:
        transformers = offline("transformers")
        tokenizer = transformers.AutoTokenizer.from_pretrained(model_path, local_files_only=True)
        model = transformers.AutoModelForCausalLM.from_pretrained(model_path, local_files_only=True)
    except ImportError:
        raise PackageError(f"Perplexity under a causal model {NEEDS_EXTRA}") from None
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise FormatError(
            f"{model_path}: no causal model could be read here ({type(error).__name__}); give the folder of one."
        ) from None
    return model.eval(), tokenizer


def _batches(sizes: npt.NDArray[np.int64]) -> Iterator[list[int]]:
    """Yield batches of texts of similar length, padded to at most ``AT_ONCE`` tokens, or a single text."""
    some: list[int] = []
    for k in np.argsort(sizes, kind="stable").tolist():
        if some and (len(some) + 1) * int(sizes[k] + 1) > AT_ONCE:
            yield some
            some = []
        some.append(k)
    yield some


def _negative_logs(model: Any, rows: list[list[int]]) -> npt.NDArray[np.float64]:
    """Return the sum of -ln P of each row's tokens but the first; float64 [N]."""
    import torch

    width = max(len(row) for row in rows)
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    there = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    with torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=there).logits[:, :-1].float()
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
    return np.asarray((losses.double() * there[:, 1:]).sum(dim=1).numpy())


CAUSAL_TEXTS = 200
"""Documents that a causal language model reads: a processor takes about a second for two."""


def _read(texts: Sequence[str], evidence: Evidence) -> Iterator[Reading]:
    held_out = texts[evidence.held_out]
    if evidence.perplexity is not None and count_words(held_out)[1]:
        yield Reading(evidence.perplexity(held_out), "Kneser-Ney, 3 words")
    for folder in evidence.causal:
        some = [texts[row] for row in spread(len(texts), CAUSAL_TEXTS) if texts[row].strip()]
        measured = causal_perplexity(some, folder) if some else None
        if measured is not None and math.isfinite(measured.mean):
            counted = measured.texts - measured.skipped
            note = f"mean of {counted:,} texts; over all their tokens together {measured.pooled:,.4g}"
            yield Reading(measured.mean, os.path.basename(os.path.normpath(folder)), note)


register("perplexity, original", group="language", unit="number",
    compute=lambda evidence: _read(evidence.originals, evidence))  # fmt: skip
register("perplexity, private", group="language", key="perplexity", unit="number",
    compute=lambda evidence: _read(evidence.privates, evidence))  # fmt: skip
