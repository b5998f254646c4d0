"""Releases of HTML: only text is drawn for, and nothing of attributes or scripts comes through."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.choices import Markup
from corpusveil.jobs.local import Local
from corpusveil.kernel import prepared as prepared_module
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.fit import doubts
from corpusveil.transforms.release.manifest import read_manifest
from corpusveil_evaluate.matching import Matched
from corpusveil_evaluate.report.manifest_release import without_markup
from tests.calls import refused
from tests.contracts.spaces import small_space, words_of
from tests.engines.corpora import TEST_KEY, release_files
from tests.kernel.test_kernel import WORDS, release, run

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


def test_words_reads_tags_as_text_as_it_always_did() -> None:
    """The default; its digest has no word of markup, so earlier releases keep theirs."""
    assert cv.TextPolicy() == cv.TextPolicy(markup="words")
    assert "markup" not in cv.TextPolicy().as_dict()
    assert made(f"<b>{A}", "words", unknown_words="keep") == f"<b>{A}"
    digests = {release(policy=cv.TextPolicy(markup=one)).digest for one in ("words", "strip")}
    assert len(digests) == 2
    with refused("wrong-value", "markup = 'keep'", "this is gone; strip"):
        cv.TextPolicy(markup="keep")  # type: ignore[arg-type]
    with refused("wrong-value", "markup"):
        cv.TextPolicy(markup="html")  # type: ignore[arg-type]


def test_strip_releases_the_text() -> None:
    """Nothing of attributes, comments, scripts, styles and unknown tags; the control shows what would be seen."""
    assert made(HTML, "strip", **IN_THE_CLEAR) == f"{A}, {B} & {C} {A} {B} <i> {C} {A}."
    assert made(f"<p>{A}<br>{B}</p> {C}", "strip", layout="keep") == f"\n{A}\n{B}\n {C}"
    assert CANARY in made(HTML, "words", **IN_THE_CLEAR)
    assert CANARY not in made(HTML, "strip", **IN_THE_CLEAR, layout="keep")


def test_output_does_not_depend_on_batches_or_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    parts = ["<p>", "</p>", "<br>", "<b>", "</b>", " ", "&amp;", "zzunknown", "12", ".", *WORDS[:9]]
    texts = ["".join(random.choice(parts, size=random.integers(0, 40))) for _ in range(30)] + [None, ""]
    policy = cv.TextPolicy(markup="strip", punctuation="keep", unknown_words="mask")
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
    cases: list[tuple[Markup, str]] = [("words", f"{A} {B} zz {C}"), ("strip", html), ("words", html)]
    for markup, text in cases:
        kernel = release(budget=budget, policy=cv.TextPolicy(markup=markup)).kernel()
        _, found = kernel.account(pa.array([text]), [0], "text", bytes(32))
        spent.append(np.concatenate([np.atleast_1d(np.asarray(one, float)) for one in (found.total, found.ldp)]))
    np.testing.assert_array_equal(spent[0], spent[1])
    assert not np.array_equal(spent[0], spent[2])


def test_files_have_the_texts_of_frames_and_resuming_with_another_value_is_refused(tmp_path: Path) -> None:
    space = small_space(words=words_of(50)).save(str(tmp_path / "space"))
    texts = [f"<p>{A},<br>{B}</p>", "", f"{A} &amp; {C}", f"<ul><li>{B}<li>{C}</ul>"]
    source, output = str(tmp_path / "in.parquet"), tmp_path / "out"
    pq.write_table(pa.table({"text": texts}), source)
    of, other = (
        cv.Release(cv.mechanism("ring-geometric", space), SURE, policy, cv.Key(TEST_KEY))
        for policy in (cv.TextPolicy(markup="strip"), cv.TextPolicy())
    )
    privatize_corpus(of, [source], str(output), Local())
    (shard,) = (output / "data").iterdir()
    private = pq.read_table(shard)["text"].to_pylist()
    assert private[:2] == [f"{A}, {B}", ""]
    assert private == cv.privatize(texts, of, cv.RowNumbers("in"))
    before = release_files(output)
    with refused("output-in-use", "text.markup", "strip"):
        privatize_corpus(other, [source], str(output), Local())
    assert release_files(output) == before
    given, manifest = Matched(texts, private, len(texts), chosen=len(texts)), read_manifest(str(output))
    plain, inside = without_markup(given, manifest)
    assert not re.search("[<>]", " ".join(plain.originals + plain.privates))
    assert inside is not None
    assert "markup" not in inside["configuration"]["text"]
    assert without_markup(given, None) == (given, None)


def test_what_a_release_hardly_suits_is_said() -> None:
    """HTML, and what tells persons, in one text in ten; not in a few, nor what a setting reads."""
    space, spans = cv.demo_space(), cv.SpanPolicy(find=["names"])
    for texts, policy, found, words in (
        (["<p>a"] + ["b"] * 9, cv.TextPolicy(), None, ["HTML"]), ([], cv.TextPolicy(), None, []),
        (["<p>a"] + ["b < c > d"] * 11, cv.TextPolicy(), None, []),
        (["<p>Best,\nKevin"], cv.TextPolicy(markup="strip"), spans, []),
        (["<p>Best,\nKevin"], cv.TextPolicy(), None, ["HTML", "spans"]),
        (["call +49 170 1234567"], cv.TextPolicy(), None, ["spans"]),
        (["Hi, it broke. This is good."], cv.TextPolicy(), None, []),
    ):  # fmt: skip
        release = cv.Release(cv.RingGeometric(space), cv.Budget(1.0), policy, cv.Key.for_tests(), spans=found)
        said = doubts(release, pa.array(texts, pa.string()))
        assert len(said) == len(words), texts
        assert all(word in sentence for word, sentence in zip(words, said, strict=True)), texts
        with warnings.catch_warnings(record=True, action="always") as warned:
            cv.privatize(texts, release, ids=range(len(texts)))
        assert [str(warning.message) for warning in warned] == said
