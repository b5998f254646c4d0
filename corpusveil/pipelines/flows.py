"""The flows: each is a command whose options are settings, and a step of a configuration file."""

# Listings and help import this module, so it imports nothing that they do not show.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpusveil.registry import EVALUATE, imported

if TYPE_CHECKING:
    from corpusveil.pipelines.settings import Settings
    from corpusveil.pipelines.watch import Watch


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow: the name and help of its command, and its place in a run.

    ``help`` is that of the command, unless a file of ``cli`` gives it further options. ``function`` is a
    ``module:name`` of the package, or of ``corpusveil_evaluate``. A file requests the flow if it has all settings of
    ``wanted``; `` or `` separates alternatives.
    """

    name: str
    line: str
    help: str
    function: str
    wanted: tuple[str, ...]
    artifact: str | None = None
    """The setting that names its output; None if the function itself recognizes finished work."""
    reads: str | None = None
    """The setting that names the files that it reads and no earlier flow makes."""

    def is_wanted(self, settings: Settings) -> bool:
        """Say whether settings request it."""
        return all(any(settings.value(place) for place in places.split(" or ")) for places in self.wanted)

    def do(self, settings: Settings, watch: Watch) -> Any:
        """Run it; its module is imported now."""
        module, _, name = self.function.partition(":")
        place = module if module.startswith(EVALUATE) else f"corpusveil.{module}"
        return getattr(imported(place), name)(settings, watch)


# A table: a flow's name, its line in listings, its help, and its place in a run.
# fmt: off
FLOWS = (
    Flow(
        "count", "Count the n-grams of a corpus.",
        """Count the n-grams of a corpus, within sentences, lower-cased; exact, in bounded memory, and resumable.

        Example: corpusveil count 'c4/*.json.gz' --output counts/c4 --engine spark
        """,
        "pipelines.collocations:count", wanted=("collocations.input", "collocations.counts"),
        artifact="collocations.counts", reads="collocations.input"),
    Flow(
        "score", "Find the collocations among counted n-grams.",
        """Score n-grams by how much more often than by chance their words stand together.

        Example: corpusveil score --counts counts/c4 --output collocations/c4 --min-count 20
        """,
        "pipelines.collocations:score", wanted=("collocations.counts", "collocations.table"),
        artifact="collocations.table"),
    Flow(
        "tokenize", "Split a corpus into words or collocations.",
        """Tokenize a corpus: shards of tokens for 'corpusveil train', as Parquet and with a sentence per line.

        Example: corpusveil tokenize 'c4/*.json.gz' --tokenizer gst --collocations collocations/c4 --output tokens/c4
        """,
        "pipelines.collocations:tokenize", wanted=("collocations.input", "collocations.tokens"),
        artifact="collocations.tokens", reads="collocations.input"),
    Flow(
        "model", "Make a language model from n-gram counts.",
        """Make a language model from n-gram counts: Kneser-Ney trigrams, which 'denoise' reads.

        Example: corpusveil model --counts counts/c4 --output models/c4 --min-trigram 2
        """,
        "pipelines.collocations:build_model", wanted=("model.path",), artifact="model.path"),
    Flow(
        "train", "Train word vectors on a tokenized corpus.",
        """Train word2vec: tokens in, vectors out; resumable, and deterministic with one thread.

        Example: corpusveil train --tokens tokens/c4-gst --output vectors/c4-gst --threads 6
        """,
        "pipelines.collocations:train", wanted=("embeddings.vectors",), artifact="embeddings.vectors"),
    Flow(
        "space", "Build a space from word vectors.",
        """Build a space: vocabulary, vectors and one-dimensional lists, hashed and frozen.

        Example: corpusveil space --vectors vectors.txt.gz --output spaces/glove
        """,
        "pipelines.space:build", wanted=("space.path", "space.vectors or embeddings.vectors"),
        artifact="space.path", reads="space.vectors"),
    Flow(
        "store", "Make a store of public pieces of text.",
        """Make a store: pieces of public texts, for releases in which one of them stands for each text.

        They are released word for word. Name only texts that anybody may read.

        Example: corpusveil store 'c4/*.json.gz' --space en --licence 'ODC-BY 1.0' --output stores/c4
        """,
        "pipelines.store:build", wanted=("store.path", "store.input"), artifact="store.path", reads="store.input"),
    Flow("privatize", "Privatize a corpus.", "", "pipelines.privatize:run", wanted=("output.path",)),
    Flow(
        "denoise", "Make a release readable, with a model of public text.",
        """Replace a release's words by their likeliest originals. Reads no private data and spends nothing.

        Example: corpusveil denoise released --space spaces/c4 --model models/c4 --output readable
        """,
        "pipelines.language:denoise", wanted=("denoise.path",)),
    Flow(
        "audit", "Check a guarantee.",
        """Check a guarantee, on exact laws if there are any, otherwise on samples. Exit status 1 if it is refuted.

        Example: corpusveil audit --space spaces/glove --mechanism santext --epsilon 5

        Example: corpusveil audit --space spaces/glove --mechanism ring-geometric --epsilon 10 --per document
        --document 500
        """,
        "pipelines.audit:run", wanted=("audit.level",)),
    Flow("evaluate", "", "", "corpusveil_evaluate.report.beside_original:run", wanted=("evaluate.path",)),
)
# fmt: on
"""The flows, in the order of a run."""
