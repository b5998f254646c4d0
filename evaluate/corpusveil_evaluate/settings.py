"""The section ``[evaluate]`` of a configuration file, and the options of ``corpusveil evaluate release``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from corpusveil.choices import Separator
from corpusveil.pipelines.fields import Section, key
from corpusveil.pipelines.flows import Flow

DOCUMENTS = 10_000
"""The number of documents to evaluate."""
COMMAND = "evaluate release"
FLOW = Flow(
    "evaluate", "", "corpusveil_evaluate.report.beside_original:run",
    """
    space: path=space
    store: path=store
    evaluate: * original!= private!= path!=output models=model vectors=similarity_vectors
    """,
    wanted=("evaluate.path",), command=COMMAND,
)  # fmt: skip


# A table: two or three lines a setting.
# fmt: off
class EvaluateSettings(Section):
    """A release beside its original: what it discloses, and how useful it still is."""

    original: str | None = key(
        "The original corpus: a file, folder or glob. Default in a file: the input of [corpus].", None, path=True,
        metavar="ORIGINAL", group="Files")
    private: str | None = key(
        "The private texts: the folder of a release, or files. Default in a file: the release of [output].", None,
        path=True, metavar="PRIVATE", group="Files")
    path: str | None = key("The report: a new folder or URL.", None, path=True, metavar="URL", group="Files")
    collocations: str | None = key(
        "The collocation table of the release. Default: none. Default in a file: that of [text].", None, path=True,
        metavar="URL", group="Files", named=True)
    text: str | None = key(
        "The column of the original that has the text. Default: text. Default in a file: corpus.text.", None,
        metavar="COLUMN")
    private_text: str | None = key(
        "The column of the private files that has the text. Default: as in the original.", None, metavar="COLUMN")
    id: str | None = key("The column, of both, that identifies documents. Default: position.", None, metavar="COLUMN")
    label: str | None = key(
        "A column of the original that models predict from private text. Default: none.", None,
        metavar="COLUMN")
    attribute: str | None = key(
        "A column of the original that no attacker should infer from private text. Default: none.", None,
        metavar="COLUMN")
    models: list[str] = key(
        "The features of models and attackers, which are logistic regressions: tfidf or vectors. Repeatable. Default: "
        "tfidf.", [],
        metavar="NAME")
    seeds: int = key("The number of splits of the documents with a label, 2 or more.", 5, ge=2)
    documents: int = key("The number of documents to evaluate, 10 or more, sampled evenly.", DOCUMENTS, ge=10)
    counts: str | None = key(
        "Public n-gram counts for perplexity, which 'count' writes. Default: every other original.", None, path=True,
        metavar="URL")
    encoder: str | None = key(
        "A sentence encoder for similarity: a local folder or package. Default: word vectors.", None, metavar="PATH")
    vectors: str | None = key(
        "Word vectors for similarity of meaning, from an embedding other than that of the space. Default: the vectors "
        "of the space, which flatter the mechanism.", None, path=True, metavar="FILE")
    separator: Separator | None = key(
        "The separator of CSV cells, in the original and in the private files. Default: comma. Default in "
        "a file: corpus.separator.", None)
    publishable: bool = key("Leave out all texts, and all figures that were counted in the originals.", default=False)

    def broken(self, value: Callable[[str], Any]) -> Iterator[tuple[str, str]]:
        """Yield contradictions."""
        if re.search(r"\[\]|^[.].*[.]", value("corpus.text") or ""):
            yield "evaluate", "this reads only texts of a top-level column, and {corpus.text} is a path; leave it out"
        if self.encoder is not None and self.vectors is not None:
            yield "evaluate.vectors", "similarity is measured by {evaluate.encoder} or by this; leave either out"
        if self.label is not None and self.label == self.attribute:
            yield (
                "evaluate",
                "{evaluate.label} and {evaluate.attribute}: a column is named twice; give different columns",
            )

    def incomplete(self) -> Iterator[tuple[str, str]]:
        """Yield what a file lacks."""
        if self.path is None:
            yield "evaluate.path", "this key is missing"
