"""The classifier of the comparative analysis: embedding, LSTM, dropout, softmax (Meisenbacher et al. 2024), an extra.

From the paper: batches of 64, at most 30 epochs, early stopping, the best weights kept, dropout 0.2. Our choice, since
it is not stated: 128 units, Adam at 0.001, a tenth of the training rows for early stopping, patience of 3 epochs, and
vectors that are trained further.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import DataError, PackageError
from corpusveil.spaces import Space
from corpusveil_evaluate.terms import terms_of, tokenizer_of
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import Predictor

LONGEST = 256
"""The most words of a text."""
HELD_BACK = 0.1


@dataclass(frozen=True, slots=True)
class Recurrent:
    """An LSTM over the space's vectors of a text's words; words that the space lacks share one vector of zeros.

    The seed decides weights, order of rows, dropout and held-out rows. Pairs are refused.
    """

    space: Space
    units: int = 128
    epochs: int = 30
    batch: int = 64
    dropout: float = 0.2
    patience: int = 3
    rate: float = 1e-3
    name: str = "lstm"
    seeded: bool = True

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:
        """Return the classifier. Raises UserError without PyTorch, for pairs, and for a single class."""
        try:
            import torch
        except ImportError:
            raise PackageError("The model lstm needs PyTorch: pip install 'corpusveil[transformers]'.") from None
        train.require_classes()
        if train.pairs is not None:
            raise DataError(f"{train.name}: the model lstm takes single texts, not pairs; use tfidf or vectors.")
        self.space.require_vectors(self.name)
        torch.manual_seed(seed)
        random, classes = np.random.default_rng(seed), train.classes
        rows = random.permutation(len(train))
        held_back = max(1, round(HELD_BACK * len(train)))
        ids = self._ids(train.texts)
        labels = torch.tensor([classes.index(label) for label in train.labels])
        model = self._network(torch, len(classes))
        optimizer = torch.optim.Adam(model.parameters(), lr=self.rate)
        cross_entropy = torch.nn.CrossEntropyLoss()
        best, kept, waited = float("inf"), None, 0
        for _ in range(self.epochs):
            model.train()
            order = random.permutation(rows[held_back:])
            for start in range(0, order.size, self.batch):
                some = order[start : start + self.batch]
                optimizer.zero_grad()
                cross_entropy(model(_padded(torch, ids, some)), labels[some]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                loss = float(cross_entropy(model(_padded(torch, ids, rows[:held_back])), labels[rows[:held_back]]))
            if loss < best:
                best, kept, waited = loss, copy.deepcopy(model.state_dict()), 0
            else:
                waited += 1
                if waited == self.patience:
                    break
        model.load_state_dict(kept)
        model.eval()

        def predict(task: LabelledTexts) -> list[str]:
            given, predicted = self._ids(task.texts), []
            with torch.no_grad():
                for start in range(0, len(task), self.batch):
                    some = np.arange(start, min(start + self.batch, len(task)))
                    predicted += [classes[number] for number in model(_padded(torch, given, some)).argmax(-1).tolist()]
            return predicted

        return predict

    def _ids(self, texts: Sequence[str]) -> list[npt.NDArray[np.int64]]:
        """Return the numbers of a text's words: 0 pads, 1 is a word that the space lacks, others from 2 on."""
        words = terms_of(texts, tokenizer_of(self.space.vocabulary))
        return [
            words.ids[start:end][:LONGEST].astype(np.int64) + 2
            for start, end in zip(words.offsets[:-1].tolist(), words.offsets[1:].tolist(), strict=True)
        ]

    def _network(self, torch: Any, classes: int) -> Any:
        vectors = torch.from_numpy(np.array(self.space.vectors, dtype=np.float32))
        first = torch.cat([torch.zeros(2, vectors.shape[1]), vectors])
        recurrent, share = self.units, self.dropout

        class Network(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.words = torch.nn.Embedding.from_pretrained(first, freeze=False, padding_idx=0)
                self.lstm = torch.nn.LSTM(vectors.shape[1], recurrent, batch_first=True)
                self.dropout = torch.nn.Dropout(share)
                self.dense = torch.nn.Linear(recurrent, classes)

            def forward(self, padded: tuple[Any, Any]) -> Any:
                ids, lengths = padded
                packed = torch.nn.utils.rnn.pack_padded_sequence(
                    self.words(ids), lengths, batch_first=True, enforce_sorted=False
                )
                _, (last, _) = self.lstm(packed)
                return self.dense(self.dropout(last[-1]))

        return Network()


def _padded(torch: Any, ids: Sequence[npt.NDArray[np.int64]], rows: npt.NDArray[np.int64]) -> tuple[Any, Any]:
    """Return word numbers [rows, longest] and lengths; a text without words is one word that the space lacks."""
    some = [ids[row] if ids[row].size else np.ones(1, np.int64) for row in rows.tolist()]
    lengths = torch.tensor([one.size for one in some])
    return torch.nn.utils.rnn.pad_sequence([torch.from_numpy(one) for one in some], batch_first=True), lengths
