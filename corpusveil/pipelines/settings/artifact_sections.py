"""Settings of the public artifacts: n-gram counts, collocations, vectors, spaces, stores."""

from __future__ import annotations

from typing import Literal

from corpusveil.choices import Hyphens, Measure
from corpusveil.pipelines.fields import Section, key

TokenizerName = Literal["word", "gst", "mst"]


# A table: two or three lines a setting.
# fmt: off
class CollocationsSettings(Section):
    """The public corpus: counted, scored and tokenized."""

    input: list[str] = key("Files, folders or quoted globs, at any fsspec URL.", [], path=True, metavar="INPUT...")
    text: str = key("The column with the text.", "text", metavar="COLUMN")
    counts: str | None = key(
        "N-gram counts: the folder or URL that 'count' writes.", None, path=True, metavar="URL", group="Files")
    table: str | None = key(
        "The collocation table: the folder or URL that 'score' writes.", None, path=True, metavar="URL", group="Files")
    tokens: str | None = key(
        "Tokens: the folder or URL that 'tokenize' writes, or text files with one sentence per line.", None, path=True,
        metavar="URL", group="Files")
    max_n: int = key("The longest n-grams to count, 1 to 5 words.", 3, ge=1, le=5)
    min_count: int = key("Leave out n-grams that occur less often.", 5, ge=1)
    hyphens: Hyphens | None = key(
        "Whether a hyphen between letters splits words or joins them (long-term). Default: split; for tokens, as in "
        "the collocations.", None, group="Text")
    language: str | None = key(
        "The language of the corpus, as a code or English name such as de or German.", None, metavar="LANGUAGE",
        group="Text")
    measure: Measure = key("The association measure.", "pmi")
    threshold: float = key("The lowest score of a collocation, on the scale of the measure.", 2.0)
    score_min_count: int = key("Leave out n-grams that occur less often.", 1, ge=1)
    connectors: str | None = key(
        "Connector words, one per line. Default: gensim's for English.", None, path=True, metavar="FILE")
    connectors_rule: Literal["strict", "edges"] = key(
        "Where connector words are refused: anywhere in a collocation (strict), or at its ends (edges).", "strict")
    tokenizer: TokenizerName = key(
        "Single words, or the method that joins words into collocations.", "gst", group="Text")


class EmbeddingsSettings(Section):
    """Word vectors, trained on the tokens."""

    vectors: str = key("Word vectors: a new folder or URL.", path=True, metavar="URL", group="Files")
    dimensions: int = key("Dimensions of the vectors.", 300, ge=1)
    window: int = key("Context words on each side.", 5, ge=1)
    epochs: int = key("Passes over the tokens.", 5, ge=1)
    min_count: int = key("Leave out tokens that occur less often.", 5, ge=1)
    threads: int = key(
        "Training threads. With more than 1, training is faster and results differ from run to run.", 1, ge=1,
        group="Engine")
    trainer: Literal["gensim", "spark"] = key(
        "The trainer: gensim on one machine, or Spark MLlib.", "gensim", group="Engine")


class SpaceSettings(Section):
    """The space: vocabulary, public counts, vectors and lists."""

    path: str = key(
        "The space: a folder or URL, or the name of an installed space, such as en. 'space' writes a space.", path=True,
        named=True, often=True, metavar="URL", group="Files", start="en")
    vectors: list[str] = key(
        "Word vectors: word2vec or GloVe text, .bin, .npz, or what 'train' wrote. Repeatable.", [], path=True,
        metavar="FILE")
    lists: int = key("Lists per embedding.", 1, ge=0)
    order: Literal["greedy", "improved"] | None = key(
        "How lists are ordered. Default: improved if they are balanced, otherwise greedy.", None)
    vocabulary: str | None = key("Keep only the words in this file, one per line.", None, path=True, metavar="FILE")
    exclude: str | None = key(
        "Leave out the words in this file, one per line, so that none of them is ever drawn.", None, path=True,
        metavar="FILE")
    counts: str | None = key(
        "Public word counts that 'resample' draws from: the output of 'count', or word<TAB>count, one per line.", None,
        path=True, metavar="URL")
    balance: float | None = key(
        "The weight of public frequency next to meaning, so that a replacement discloses less. Needs {space.counts}. "
        "0: no weight. Default: 1 for the order of the lists if there are counts; vectors are unchanged.", None, ge=0)
    grammar: float | None = key(
        "The weight of grammar next to meaning in the order of lists, so that nouns replace nouns. Needs "
        "{space.counts} of pairs of words. 0: no weight. Default: 1 if there are such counts.", None, ge=0)
    language: str | None = key(
        "The language of the vectors, as a code or English name such as de or German. Default: what 'train' "
        "recorded, or none.", None, metavar="LANGUAGE")
    scale: float | None = key(
        "The median distance of two words to which vectors are scaled: mechanisms on vectors spend epsilon times a "
        "distance. Default: vectors as given.", None, gt=0)
    teacher: str | None = key(
        "A sentence encoder, by its name among the entry points corpusveil.encoders. It reads {space.lessons} once, "
        "and teaches words to add up to sentences, by which stores rank texts. Needs {space.counts}.", None,
        metavar="NAME")
    lessons: list[str] = key(
        "Public texts for {space.teacher}, with a column text: files, folders or quoted globs. Repeatable.", [],
        path=True, metavar="PUBLIC")


class StoreSettings(Section):
    """The store of public pieces of text, which are released word for word."""

    path: str = key(
        "The store: a folder or URL, or the name of an installed store, such as en, whose public texts replace whole "
        "texts, instead of words. 'store' writes a store.", path=True, named=True, often=True, metavar="URL",
        group="How private")
    input: list[str] = key(
        "Public texts: files, folders or quoted globs, at any fsspec URL.", [], path=True, metavar="PUBLIC...")
    text: str = key("The column with the text.", "text", metavar="COLUMN")
    licence: str | None = key(
        "The license under which everybody may read and pass on these texts. It is recorded.", None, metavar="TEXT")
    attribution: str | None = key("Whom to name as the author of the texts. It is recorded.", None, metavar="TEXT")
    words: str = key(
        "The least and the most words of a piece. Sentences are added until it has the least. 4-40: sentences; 20-80: "
        "short texts.", "4-40", pattern="^[0-9]+-[0-9]+$", metavar="LEAST-MOST", often=True)
    size: int = key("The number of pieces; a random sample of those in the texts.", 100_000, ge=2, often=True)
    salt: str | None = key(
        "The salt of the sample, 32 hexadecimal digits. Default: one is drawn and recorded. With one salt, the same "
        "texts make the same store, and a larger store begins with a smaller one.", None, metavar="HEX")
    exclude: str | None = key(
        "Words that no piece has, one per line. Default: the offensive words that the package of the space left out.",
        None, path=True, metavar="FILE")
    encoder: str | None = key(
        "What makes vectors of pieces, by its name among the entry points corpusveil.encoders. Default: the sum of "
        "word vectors, which is built in.", None, metavar="NAME")
    refuse: list[str] = key(
        "Recognizers whose spans no piece has, named as in {spans.find}. Repeatable.", [], metavar="NAME")
    unlike: list[str] = key(
        "Other public texts, to measure what the store does not know. Repeatable.", [], path=True, metavar="PUBLIC")
    neighbors: int | None = key(
        "How many of the nearest pieces may stand for a text: fewer keep its matter better, more hide better which "
        "text it was; 'plan' shows both. Default: the fewest with which four in five texts become a near piece, at "
        "least 4.", None, ge=1, metavar="NUMBER", group="How private")
    most_pieces: int | None = key(
        "With {budget.per} sentence or paragraph: the most pieces of a text. What follows is part of the last one.",
        None, ge=1, metavar="NUMBER", group="Rarely used")
    mark_source: bool = key(
        "Write a column source, which says public in each row: a passage is nobody's text.", default=False,
        group="Rarely used")
    accept_overlap: bool = key(
        "Release although the input's texts stand in the store; the manifest says so.", default=False,
        group="Rarely used")
