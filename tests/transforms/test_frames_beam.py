"""Beam collections, bounded and unbounded: the text changes, and type, window, timestamp and pane stay."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms import trigger, window
from apache_beam.transforms.window import TimestampedValue

import corpusveil as cv
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil.transforms import beam as module
from corpusveil.transforms.beam import PrivatizeDocuments
from tests.calls import refused
from tests.contracts.spaces import small_space, words_of

WORDS = words_of(40)
RELEASE = cv.Release(RingGeometric(small_space(words=WORDS)), cv.Budget(1.0), cv.TextPolicy(), key=cv.Key.for_tests())
COUNT = 60
TEXTS = [" ".join(WORDS[n % 7 : n % 7 + 12]) for n in range(COUNT)]
ALL_AT_THE_END = beam.WindowInto(
    window.GlobalWindows(), trigger=trigger.AfterWatermark(), accumulation_mode=trigger.AccumulationMode.DISCARDING
)
WINDOWS = {
    "global": window.GlobalWindows(),
    "fixed": window.FixedWindows(10),
    "sliding": window.SlidingWindows(10, 5),
    "sessions": window.Sessions(3),
}


class Review(NamedTuple):
    key: int
    stars: int
    text: str | None


@dataclasses.dataclass(frozen=True)
class Post:
    key: int
    stars: int
    text: str | None


KEPT = ("key", "stars")


def document(number: int) -> dict[str, Any]:
    return {"key": number, "stars": number % 5, "text": TEXTS[number]}


@pytest.fixture(scope="module")
def expected() -> dict[int, str]:
    """What the same documents are in an Arrow table."""
    table = pa.table({"key": list(range(COUNT)), "text": TEXTS})
    return dict(enumerate(cv.privatize(table, RELEASE, "key").column("text").to_pylist()))


class Where(beam.DoFn):
    """Tells where an element is: its key, text, timestamp, windows and pane."""

    def process(self, element: Any, windowed: Any = beam.DoFn.WindowedValueParam) -> Iterator[Any]:
        windows = tuple(sorted(repr(one) for one in windowed.windows))
        yield element["key"], element["text"], windowed.timestamp.micros, windows, repr(windowed.pane_info)


def same_places(before: Any, after: Any, expected: dict[int, str], count: int) -> None:
    """Check that every element of ``before`` is in ``after`` with its private text, and else as it was.

    ``count`` is how often elements stand in windows: an element in two windows is told twice.
    """

    def check(parts: list[Any]) -> None:
        ((_, sides),) = parts
        places = sorted((key, expected[key], *rest) for key, _, *rest in sides["before"])
        assert len(places) == count
        assert sorted(sides["after"]) == places

    told = {
        name: side
        | f"where {name}" >> beam.ParDo(Where())
        | f"one window {name}" >> ALL_AT_THE_END
        | f"one key {name}" >> beam.Map(lambda place: (0, place))
        for name, side in (("before", before), ("after", after))
    }  # fmt: skip
    assert_that(told | beam.CoGroupByKey(), check)


@pytest.mark.parametrize(
    ("windowing", "most"), [("global", 1), ("fixed", 7), ("sliding", 1), ("sliding", 7), ("sessions", 4096)]
)
def test_windows_and_timestamps_stay_whatever_the_size_of_a_batch(
    windowing: str, most: int, expected: dict[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches end anywhere, also between elements of several windows each, and no element moves or is repeated."""
    monkeypatch.setattr(module, "MOST_ROWS", most)
    with beam.Pipeline("FnApiRunner") as pipeline:
        before = (
            pipeline
            | beam.Create([TimestampedValue(document(number), number * 0.7) for number in range(COUNT)], False)
            | beam.Map(lambda row: row)
            | beam.WindowInto(WINDOWS[windowing])
        )
        count = COUNT * (2 if windowing == "sliding" else 1)
        same_places(before, before | PrivatizeDocuments(RELEASE, id="key", keep=KEPT), expected, count)


@pytest.mark.parametrize("kind", [Review, Post], ids=["named tuple", "dataclass"])
def test_objects_come_back_as_rows(kind: Callable[..., Any], expected: dict[int, str]) -> None:
    """A collection with a schema keeps it, so that Select still finds fields; null texts stay."""
    given = [kind(**document(number)) for number in range(10)] + [kind(10, 1, None)]
    wanted = [(n, n % 5, expected[n]) for n in range(10)] + [(10, 1, None)]
    with beam.Pipeline("FnApiRunner") as pipeline:
        before = pipeline | beam.Create(given).with_output_types(kind)
        after = before | PrivatizeDocuments(RELEASE, id="key", keep=KEPT)
        typed = after | beam.Filter(lambda row: type(row) is beam.Row)
        assert_that(typed | beam.Select("key", "stars", "text") | beam.Map(tuple), equal_to(wanted))


def test_other_fields_come_out_only_if_they_are_kept() -> None:
    """Of a schema what is gone is named when the pipeline is built."""
    given = {"key": 1, "stars": 12345, "text": "12345 12345"}
    others, (expected,) = "fields other than text, stars", cv.privatize(["12345 12345"], RELEASE, ids=[1])
    for kind, gone in ((Review, "key"), (Post, others), (dict, others)):
        with beam.Pipeline("FnApiRunner") as pipeline:
            before = pipeline | beam.Create([kind(**given)]).with_output_types(kind)
            with pytest.warns(UserWarning, match=f"not copied: {gone}"):
                after = before | PrivatizeDocuments(RELEASE, id="key", keep="stars")
            rows = after | beam.Map(lambda row: row if isinstance(row, dict) else row._asdict())
            assert_that(rows, equal_to([{"text": expected, "stars": 12345}]))


def test_a_schema_without_the_field_is_refused_when_the_pipeline_is_built() -> None:
    rows = beam.Pipeline("FnApiRunner") | beam.Create([1]) | beam.Select(key=int, body=str)
    with refused("unsuitable-data", "text"):
        _ = rows | PrivatizeDocuments(RELEASE, id="key")


@pytest.mark.parametrize("given", [
    {"key": 1}, {"text": "zzcanary"}, {"key": None, "text": "zzcanary"}, {"key": ["zzcanary"], "text": "zzcanary"},
    {"key": 10**5000, "text": "zzcanary"}, {"key": 1, "text": 5}, {"key": 1, "text": b"zzcanary"}, "zzcanary",
], ids=range(8))  # fmt: skip
def test_what_cannot_be_privatized_ends_the_pipeline(given: Any) -> None:
    """One sentence, and nothing of the document, through all that Beam puts around it."""
    pipeline = beam.Pipeline("FnApiRunner")
    start = pipeline | beam.Create([0], reshuffle=False)
    _ = start | beam.Map(lambda _: given) | PrivatizeDocuments(RELEASE, id="key", keep="key")
    with pytest.raises(Exception, match=r"; (add|give|cast|convert) ") as caught:
        pipeline.run().wait_until_finish()
    assert "zzcanary" not in str(caught.value)
