"""The numbers of public text that are kept for drawing surrogates: the most frequent numbers, by shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.spaces.number_counts import ALLOWED, LONGEST, Numbers, shapes_of
from corpusveil.storage import files
from corpusveil.storage.parquet import read_table

MOST = 100_000
"""The most different numbers that are kept."""
LEAST = 2
"""The least count of a kept number."""
ALIKE = 5
"""The least number of different numbers with the same letters in the same places for which the letters stay.

Letters that stay are disclosed. Letters of only one or two numbers (*50cent*) must not be."""


def choose_numbers(made: Sequence[str]) -> Numbers:
    """Return the most frequent numbers of ``made``, parts of the counts of numbers. Memory is that of one part."""
    top = pa.table({"word": pa.array([], pa.large_string()), "count": pa.array([], pa.int64())})
    for url in made:
        words = _read(url)
        top = pa.concat_tables([top, words.filter(pc.greater_equal(words["count"], LEAST))])
        if top.num_rows > 2 * MOST:
            top = _most_frequent(top)
    kept = dict(zip(*(_most_frequent(top)[name].to_pylist() for name in ("word", "count")), strict=True))
    numbers = pa.array(list(kept), pa.large_string())
    shapes, forms = shapes_of(numbers), pc.replace_substring_regex(numbers, "[0-9][0-9.,/:-]*", "0")
    common = Counter(forms.to_pylist())
    by_number = {
        number: shape
        for number, shape, form in zip(kept, shapes.to_pylist(), forms.to_pylist(), strict=True)
        if form == "0" or common[form] >= ALIKE
    }
    own = pa.array(sorted(set(by_number.values())), pa.large_string())
    totals: Counter[str] = Counter()
    for url in made:
        words = _read(url)
        words = pa.table({"shape": shapes_of(words["word"]), "count": words["count"]})
        words = words.filter(pc.is_in(words["shape"], value_set=own))
        sums = words.group_by("shape").aggregate([("count", "sum")])
        totals.update(dict(zip(sums["shape"].to_pylist(), sums["count_sum"].to_pylist(), strict=True)))
    for number, shape in by_number.items():
        totals[shape] -= kept[number]
    rows = [(shape, number, kept[number]) for number, shape in by_number.items()]
    return Numbers.of([*((shape, "", count) for shape, count in totals.items()), *rows])


def _most_frequent(words: pa.Table) -> pa.Table:
    return words.take(pc.sort_indices(words, [("count", "descending"), ("word", "ascending")])).slice(0, MOST)


def _read(url: str) -> pa.Table:
    with files.open_read(url) as file:
        table = read_table(file, ["word", "count"])
    words = table["word"].cast(pa.large_string())
    table = table.set_column(0, "word", words)
    return table.filter(pc.match_substring_regex(words, f"^[0-9]{ALLOWED}{{0,{LONGEST - 1}}}$"))
