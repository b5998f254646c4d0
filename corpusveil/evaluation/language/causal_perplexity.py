"""Perplexity under a causal language model from a folder on this machine, GPT-2 in the study of collocations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import DataError, FormatError, PackageError, no_causal_model
from corpusveil.evaluation.statistics.encoders import NEEDS_EXTRA
from corpusveil.evaluation.terms import check_texts

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
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import transformers
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError:
        raise PackageError(f"Perplexity under a causal model {NEEDS_EXTRA}") from None
    transformers.utils.logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(model_path, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(model_path, local_files_only=True)
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
