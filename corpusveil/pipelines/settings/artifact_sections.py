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

    input: list[str] = key(
        "The public corpus: files, folders or quoted globs, at any fsspec URL.", [], path=True, metavar="INPUT...")
    text: str = key("The column that holds the text.", "text", metavar="COLUMN")
    counts: str | None = key(
        "N-gram counts: the folder or URL that 'count' writes.", None, path=True, metavar="URL", group="Files")
    table: str | None = key(
        "The collocation table: the folder or URL that 'score' writes.", None, path=True, metavar="URL", group="Files")
    tokens: str | None = key(
        "Tokens: the folder or URL that 'tokenize' writes.", None, path=True, metavar="URL", group="Files")
    max_n: int = key("The longest n-grams to count, 1 to 5 words.", 3, ge=1, le=5)
    min_count: int = key("Leave out n-grams that occur fewer times than this.", 5, ge=1)
    hyphens: Hyphens | None = key(
        "Read long-term as two words (split) or one (join). Default: split; for 'tokenize', as in the collocation "
        "table.", None, group="Text", in_file=True)
    language: str | None = key(
        "The language of the corpus, as a code or English name: de, German. Default: not recorded.", None,
        metavar="LANGUAGE", group="Text")
    measure: Measure = key("The association measure by which n-grams are scored.", "pmi")
    threshold: float = key("The lowest score of a collocation, in units of the measure.", 2.0)
    score_min_count: int = key("Leave out n-grams that occur fewer times than this.", 1, ge=1)
    connectors: str | None = key(
        "A file of connector words (of, the), one per line. Default: gensim's list for English.", None, path=True,
        metavar="FILE")
    connectors_rule: Literal["strict", "edges"] = key(
        "Where a collocation may not have connector words: anywhere (strict), or only at its ends (edges).", "strict")
    tokenizer: TokenizerName = key(
        "How text becomes tokens: single words (word), or words joined into collocations (gst, mst).", "gst",
        group="Text")


class EmbeddingsSettings(Section):
    """Word vectors, trained on the tokens."""

    vectors: str = key("Word vectors: the folder or URL that 'train' writes.", path=True, metavar="URL", group="Files")
    dimensions: int = key("The number of dimensions of a vector.", 300, ge=1)
    window: int = key("The number of context words on each side of a word.", 5, ge=1)
    epochs: int = key("The number of passes over the tokens.", 5, ge=1)
    min_count: int = key("Leave out tokens that occur fewer times than this.", 5, ge=1)
    threads: int = key(
        "The number of training threads. More than 1 is faster, but results differ from run to run.", 1, ge=1,
        group="Engine")


class SpaceSettings(Section):
    """The space: a vocabulary with public counts, vectors and lists of similar words."""

    path: str = key(
        "The space of words: a folder or URL, or the name of an installed space, such as en. 'corpusveil space' writes "
        "a space.", path=True, named=True, often=True, metavar="URL", group="Files", start="en")
    vectors: list[str] = key(
        "A file of word vectors: word2vec or GloVe text, .bin, .npz, or the folder that 'train' wrote. Repeatable.", [],
        path=True, metavar="FILE")
    lists: int = key("The number of lists for each file of vectors.", 1, ge=0)
    order: Literal["greedy", "improved"] | None = key(
        "How words are ordered in lists: greedy, or improved, which is slower and puts nearer words next to each "
        "other. Default: improved if lists are balanced, otherwise greedy.", None)
    vocabulary: str | None = key("A file of words, one per line: keep only these.", None, path=True, metavar="FILE")
    exclude: str | None = key(
        "A file of words, one per line: leave these out, so that no release has them.", None, path=True, metavar="FILE")
    counts: str | None = key(
        "Public word counts, from which words are resampled: the folder that 'count' wrote, or a file of lines "
        "word<TAB>count.", None, path=True, metavar="URL")
    balance: float | None = key(
        "The weight of public frequency against meaning in lists: the higher, the less a replacement discloses. Needs "
        "{space.counts}, or vectors with counts. 0: no weight. Default: 1 if there are counts.", None, ge=0)
    grammar: float | None = key(
        "The weight of grammar against meaning in the order of lists, so that nouns replace nouns. Needs "
        "{space.counts} with pairs of words. 0: no weight. Default: 1 if there are such counts.", None, ge=0)
    language: str | None = key(
        "The language of the vectors, as a code or English name: de, German. Default: the language that 'train' "
        "recorded.", None, metavar="LANGUAGE")
    scale: float | None = key(
        "Scale the vectors to this median distance between two words; mechanisms on vectors spend epsilon times a "
        "distance. Default: vectors as given.", None, gt=0)
    teacher: str | None = key(
        "A sentence encoder, by its name among the entry points corpusveil.encoders. It reads {space.lessons}, from "
        "which word vectors learn to add up to sentence vectors; stores rank texts by these. Needs {space.counts}.",
        None, metavar="NAME")
    lessons: list[str] = key(
        "Public texts for {space.teacher} to read, in a column text: files, folders or quoted globs. Repeatable.", [],
        path=True, metavar="PUBLIC")


class StoreSettings(Section):
    """The store of public texts, cut into passages, which replace private texts."""

    path: str = key(
        "The store of public passages that replace whole texts: a folder or URL that 'store' writes, or the name of an "
        "installed store, such as en.", path=True, named=True, often=True, metavar="URL", group="How private")
    input: list[str] = key(
        "Public texts: files, folders or quoted globs, at any fsspec URL.", [], path=True, metavar="PUBLIC...")
    text: str = key("The column that holds the text.", "text", metavar="COLUMN")
    licence: str | None = key(
        "The license by which anybody may read and share these texts. The store records it.", None, metavar="TEXT")
    attribution: str | None = key(
        "The authors to credit for these texts. The store records them.", None, metavar="TEXT")
    words: str = key(
        "The fewest and the most words of a passage. Sentences are joined until they have the fewest: 4-40 gives "
        "sentences, 20-80 short texts.", "4-40", pattern="^[0-9]+-[0-9]+$", metavar="LEAST-MOST", often=True)
    size: int = key("The most passages to keep: a random sample of all.", 100_000, ge=2, often=True)
    salt: str | None = key(
        "The seed of the sample, 32 hexadecimal digits: with the same salt, the same texts make the same store, and a "
        "larger store extends a smaller one. Default: drawn and recorded.", None, metavar="HEX")
    exclude: str | None = key(
        "A file of words, one per line: leave out passages with any of these. Default: the offensive words that the "
        "package of the space left out.", None, path=True, metavar="FILE")
    encoder: str | None = key(
        "A sentence encoder, by its name among the entry points corpusveil.encoders. It also reads private texts, so "
        "name it again to use the store. Default: sums of the word vectors of the space.", None, metavar="NAME",
        group="Rarely used")
    refuse: list[str] = key(
        "Leave out passages in which this recognizer, such as rules or names, finds a span. Repeatable.", [],
        metavar="NAME")
    neighbors: int | None = key(
        "How many of the nearest passages may replace a text: fewer stay closer to its subject, more hide it better; "
        "'plan' shows both. Default: the fewest (at least 4) such that four texts in five get one of them at this "
        "epsilon.", None, ge=1, metavar="NUMBER", group="How private")
    most_pieces: int | None = key(
        "With {budget.per} sentence or paragraph: the most sentences or paragraphs of a text; the last one takes the "
        "rest. Default: no limit.", None, ge=1, metavar="NUMBER", group="Rarely used")
    mark_source: bool = key(
        "Add a column source with the value public in each row, so that readers know that passages are public text.",
        default=False, group="Rarely used")
    accept_overlap: bool = key(
        "Release even if texts of the input are in the store, which the manifest then says.", default=False,
        group="Rarely used")
