"""Releases of HTML: only text is drawn for, tags stay or go, and nothing of attributes or scripts comes through."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.choices import Markup
from corpusveil.evaluation.matching import Matched
from corpusveil.evaluation.report.manifest_release import without_markup
from corpusveil.jobs.local import Local
from corpusveil.language import prepared as prepared_module
from corpusveil.language.denoise import check_readable
from corpusveil.pipelines.watch import Watch, tell_markup
from corpusveil.storage.formats import find
from corpusveil.storage.rows import Columns
from corpusveil.text.policy import MARKUP
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.manifest import read_manifest
from tests.calls import refused
from tests.contracts.spaces import small_space, words_of
from tests.engines.corpora import TEST_KEY, release_files, write_shard
from tests.transforms.test_kernel import WORDS, release, run

SURE = cv.Budget(400.0)
"""An epsilon at which words do not change, so that texts can be read."""
A, B, C = WORDS[:3]
CANARY = "qzvxkwj"
IN_THE_CLEAR = dict.fromkeys(("unknown_words", "numbers", "contacts", "other"), "keep")
HTML = (
    f'<P class="{CANARY}">{A},<br/>{B} &amp; {C}</p>\n<!-- {CANARY} --><a href="https://{CANARY}.example">{A}</a> '
    f"<script>{CANARY}</script><style>{CANARY}</style><{CANARY} {CANARY}>{B} &lt;i&gt; {C}<br><b>{A}</b>."
)


def made(text: str, markup: Markup, budget: cv.Budget = SURE, **policy: Any) -> str:
    (out,) = run(release(policy=cv.TextPolicy(markup=markup, **policy), budget=budget).kernel(), [text])
    assert out is not None
    return out


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text, self.tags = "", list[str]()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not attrs
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")


def test_words_reads_tags_as_text_as_it_always_did() -> None:
    """The default; its digest has no word of markup, so earlier releases keep theirs."""
    assert cv.TextPolicy() == cv.TextPolicy(markup="words")
    assert "markup" not in cv.TextPolicy().as_dict()
    assert made(f"<b>{A}", "words", unknown_words="keep") == f"<b>{A}"
    digests = {release(policy=cv.TextPolicy(markup=one)).digest for one in ("words", "strip", "keep")}
    assert len(digests) == 3
    with refused("wrong-value", "markup"):
        cv.TextPolicy(markup="html")  # type: ignore[arg-type]


def test_strip_releases_the_text() -> None:
    assert made(HTML, "strip", **IN_THE_CLEAR) == f"{A}, {B} & {C} {A} {B} <i> {C} {A}."
    assert made(f"<p>{A}<br>{B}</p> {C}", "strip", layout="keep") == f"\n{A}\n{B}\n {C}"


def test_keep_leaves_tags_where_they_are_without_attributes() -> None:
    expected = f"<p>{A},<br/>{B} &amp; {C}</p> <a>{A}</a> {B} &lt;i&gt; {C}<br><b>{A}</b>."
    assert made(HTML, "keep", **IN_THE_CLEAR) == expected
    assert made(f"<p> {A}  <b>{B}</b>\n</p>\n", "keep", layout="keep") == f"<p> {A}  <b>{B}</b>\n</p>\n"
    assert made(f"  <p> {A} <b> </b> ", "keep") == f"<p> {A} <b> </b>"


@pytest.mark.parametrize("markup", ["strip", "keep"])
@pytest.mark.parametrize("layout", ["normalize", "keep"])
def test_nothing_but_text_and_names_of_html_comes_through(markup: Markup, layout: str) -> None:
    """Whatever the policy leaves in the clear; the control shows that these canaries would be seen."""
    policy = {**IN_THE_CLEAR, "layout": layout}
    assert CANARY not in made(HTML, markup, **policy)
    assert CANARY in made(HTML, "words", **policy)


def test_what_is_kept_is_html_again() -> None:
    """A parser finds the tags of the input and no other: kept marks and entities cannot become tags."""
    text = "<p>&lt;script&gt; a<b>x</b> &amp;lt; 1 < 2 &amp; <br>"
    reader = Reader()
    reader.feed(made(text, "keep", **IN_THE_CLEAR))
    reader.close()
    assert reader.tags == ["p", "b", "/b", "br"]
    assert reader.text.split() == ["<script>", "ax", "&lt;", "1", "<", "2", "&"]


@pytest.mark.parametrize("markup", ["strip", "keep"])
def test_output_does_not_depend_on_batches_or_chunks(markup: Markup, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    parts = ["<p>", "</p>", "<br>", "<b>", "</b>", " ", "&amp;", "zzunknown", "12", ".", *WORDS[:9]]
    texts = ["".join(random.choice(parts, size=random.integers(0, 40))) for _ in range(30)] + [None, ""]
    policy = cv.TextPolicy(markup=markup, punctuation="keep", unknown_words="mask")
    kernel = release(budget=cv.Budget(5.0, "document"), policy=policy).kernel()
    whole = run(kernel, texts)
    assert whole[30] is None
    assert [run(kernel, [text], [k])[0] for k, text in enumerate(texts)] == whole
    for size in (1, 100):
        monkeypatch.setattr(prepared_module, "CHUNK_BYTES", size)
        assert run(kernel, texts) == whole


@pytest.mark.parametrize("allocation", ["uniform", "word-share"])
def test_a_budget_is_for_the_words_of_the_text(allocation: Any) -> None:
    """Names of tags are not counted: a document spends what its plain text spends, and each word has its share."""
    budget = cv.Budget(6.0, "document", allocation)
    spent, html = [], f"<p>{A} <i>{B}</i><br>zz {C}</p>"
    cases: list[tuple[Markup, str]] = [("words", f"{A} {B} zz {C}"), ("strip", html), ("keep", html), ("words", html)]
    for markup, text in cases:
        kernel = release(budget=budget, policy=cv.TextPolicy(markup=markup)).kernel()
        _, found = kernel.account(pa.array([text]), [0], "text", bytes(32))
        spent.append(np.concatenate([np.atleast_1d(np.asarray(one, float)) for one in (found.total, found.ldp)]))
    np.testing.assert_array_equal(spent[0], spent[1])
    np.testing.assert_array_equal(spent[0], spent[2])
    assert not np.array_equal(spent[0], spent[3])


def test_words_on_both_sides_of_a_kept_tag_are_not_joined() -> None:
    """A date whose parts stand in different elements is no single number."""
    out = made("2024<b>-05-</b>17", "keep", numbers="keep")
    assert out == "2024<b>-05-</b>17"


def test_other_markup_has_other_noise() -> None:
    """Two versions of a document that differ in tags alone split words differently, so they share no draws."""
    budget, text = cv.Budget(1.0), " ".join(WORDS[:40])
    first, second = made(f"{text}<b></b>", "keep", budget), made(f"{text}<i></i>", "keep", budget)
    assert first.removesuffix("<b></b>") != second.removesuffix("<i></i>")


def test_kept_tags_are_disclosed() -> None:
    """In the guarantee, and so in the manifest and its page."""
    for markup in ("words", "strip", "keep"):
        shown = release(policy=cv.TextPolicy(markup=markup)).guarantee().disclosed
        assert (MARKUP in shown) == (markup == "keep")


def test_tags_that_would_show_a_length_or_be_denoised_are_refused() -> None:
    safe = {"unknown_words": "resample", "contacts": "drop", "punctuation": "drop"}
    with refused("conflicting-settings", "markup"):
        release(policy=cv.TextPolicy(markup="keep", **safe), length=cv.LengthGrid(10))  # type: ignore[arg-type]
    release(policy=cv.TextPolicy(markup="strip", **safe), length=cv.LengthGrid(10))  # type: ignore[arg-type]
    with refused("conflicting-settings", "markup = 'keep'"):
        check_readable(SURE, cv.TextPolicy(markup="keep"))
    check_readable(SURE, cv.TextPolicy(markup="strip"))


def write_csv(path: Path, texts: list[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["text"], *([text] for text in texts)])


WRITERS: dict[str, Callable[[Path, list[str]], Any]] = {
    ".jsonl": lambda path, texts: write_shard(path, [{"text": text} for text in texts]),
    ".csv": write_csv,
    ".txt": lambda path, texts: path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8"),
    ".parquet": lambda path, texts: pq.write_table(pa.table({"text": texts}), path),
}


@pytest.mark.parametrize("markup", ["strip", "keep"])
def test_every_form_has_the_same_texts_and_resuming_with_another_value_is_refused(
    tmp_path: Path, markup: Markup
) -> None:
    space = small_space(words=words_of(50)).save(str(tmp_path / "space"))
    of = cv.Release(cv.mechanism("ring-geometric", space), SURE, cv.TextPolicy(markup=markup), cv.Key(TEST_KEY))
    texts = [f"<p>{A},<br>{B}</p>", "", f"{A} &amp; {C}", f"<ul><li>{B}<li>{C}</ul>"]
    expected = [{"strip": f"{A}, {B}", "keep": f"<p>{A},<br>{B}</p>"}[markup], "", None, None]
    found = {}
    for suffix, write in WRITERS.items():
        source = tmp_path / f"in{suffix}"
        write(source, texts)
        output = tmp_path / f"out{suffix}"
        privatize_corpus(of, [str(source)], str(output), Local())
        (shard,) = (output / "data").iterdir()
        with shard.open("rb") as file:
            batches = list(find(suffix).batches(file, str(shard), Columns()))
        found[suffix] = [text or "" for batch in batches for text in batch.texts.to_pylist()]
        before = release_files(output)
        other = cv.Release(of.mechanism, of.budget, cv.TextPolicy(), of.key)
        with refused("output-in-use", "text.markup", markup):
            privatize_corpus(other, [str(source)], str(output), Local())
        assert release_files(output) == before
        assert read_manifest(str(output))["configuration"]["text"]["markup"] == markup
    assert len(set(map(tuple, found.values()))) == 1
    assert found[".csv"][:2] == expected[:2]
    assert cv.privatize(texts, of, cv.RowNumbers("in")) == found[".csv"]
    manifest = read_manifest(str(tmp_path / "out.csv"))
    given = Matched(texts, found[".csv"], len(texts), chosen=len(texts))
    plain, inside = without_markup(given, manifest)
    assert not re.search("[<>]", " ".join(plain.originals + plain.privates))
    assert inside is not None
    assert "markup" not in inside["configuration"]["text"]
    assert without_markup(given, None) == (given, None)


class Heard(Watch):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warn(self, line: str) -> None:
        self.lines.append(line)


def test_html_that_would_be_read_as_words_is_announced() -> None:
    """One text in ten is; a few are not, nor is HTML that a setting reads."""
    some = pa.array(["<p>a"] + ["b"] * 9)
    for texts, markup, warned in (
        (some, "words", True), (some, "strip", False), (some, "keep", False),
        (pa.array(["<p>a"] + ["b < c > d"] * 11), "words", False), (pa.array([], pa.string()), "words", False),
    ):  # fmt: skip
        heard = Heard()
        tell_markup(texts, markup, heard)  # type: ignore[arg-type]
        assert bool(heard.lines) == warned
