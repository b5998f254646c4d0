"""Fine-tuning of a transformers model from a local folder: the studies' classifier, as an extra.

Settings are those of the studies where they state them: one epoch, 256 tokens (Meisenbacher, Chevli, Matthes 2024);
batch and rate are the usual ones. Nothing is downloaded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.errors import FormatError, PackageError
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil.evaluation.utility.text_classifiers import Predictor


@dataclass(frozen=True, slots=True)
class FineTuned:
    """A sequence classifier from ``folder`` (model and tokenizer), all weights trained with AdamW.

    ``epochs``, ``batch`` (rows), ``rate`` (of learning, falling to 0 in a line) and ``length`` (tokens) as usual. The
    seed decides the new head, dropout and the order of rows. Pairs are encoded as pairs.
    """

    folder: str
    epochs: int = 1
    batch: int = 32
    rate: float = 2e-5
    length: int = 256
    seeded: bool = True

    @property
    def name(self) -> str:
        """The folder's name."""
        return os.path.basename(os.path.normpath(self.folder))

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:
        """Return the fine-tuned classifier. Raises UserError without the packages or the folder."""
        if not os.path.isfile(os.path.join(self.folder, "config.json")):
            raise FormatError(f"{self.folder}: config.json is missing; give the folder of a transformers model.")
        try:
            import torch
            import transformers
        except ImportError:
            raise PackageError("Fine-tuning needs PyTorch: pip install 'corpusveil[transformers]'.") from None
        train.require_classes()
        torch.manual_seed(seed)
        classes = train.classes
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
            model = transformers.AutoModelForSequenceClassification.from_pretrained(
                self.folder, local_files_only=True, num_labels=len(classes), ignore_mismatched_sizes=True
            )
        except (OSError, ValueError):
            raise FormatError(
                f"{self.folder}: transformers cannot read a model and a tokenizer here; give the folder of a model."
            ) from None
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model.to(device).train()
        labels = torch.tensor([classes.index(label) for label in train.labels])
        steps = self.epochs * -(-len(train) // self.batch)
        optimizer = torch.optim.AdamW(model.parameters(), lr=self.rate)
        falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))
        random = np.random.default_rng(seed)
        for _ in range(self.epochs):
            order = random.permutation(len(train))
            for start in range(0, len(train), self.batch):
                rows = order[start : start + self.batch]
                batch = self._encoded(tokenizer, train, rows, device)
                optimizer.zero_grad()
                model(**batch, labels=labels[rows].to(device)).loss.backward()
                optimizer.step()
                falling.step()
        model.eval()

        def predict(task: LabelledTexts) -> list[str]:
            predicted: list[str] = []
            with torch.no_grad():
                for start in range(0, len(task), self.batch):
                    rows = np.arange(start, min(start + self.batch, len(task)))
                    logits = model(**self._encoded(tokenizer, task, rows, device)).logits
                    predicted += [classes[number] for number in logits.argmax(-1).tolist()]
            return predicted

        return predict

    def _encoded(self, tokenizer: Any, task: LabelledTexts, rows: Any, device: str) -> Any:
        texts = [task.texts[row] for row in rows]
        pairs = None if task.pairs is None else [task.pairs[row] for row in rows]
        encoded = tokenizer(texts, pairs, truncation=True, max_length=self.length, padding=True, return_tensors="pt")
        return encoded.to(device)
