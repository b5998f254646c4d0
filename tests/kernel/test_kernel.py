"""The batch kernel: one document, one noise, however batches are cut, and nothing secret travels with it."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from corpusveil.budget import Budget
from corpusveil.kernel import prepared as prepared_module
from corpusveil.kernel.kernel import Kernel
from corpusveil.kernel.prepared import public_weights
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil.sampling.draws import Draws
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import TOTAL
from corpusveil.storage.documents import Documents
from corpusveil.text.policy import TextPolicy
from corpusveil.text.tokens import string_buffers
from corpusveil.transforms.release.release import Release
from tests.calls import refused
from tests.contracts.mechanism import another_key
from tests.contracts.spaces import small_space, words_of
from tests.contracts.statistics import LEVEL, fit_p_value

WORDS = words_of(50)
SPACE = small_space(words=WORDS, counts=range(1, 51))
MECH = RingGeometric(SPACE)
KEY = Key.for_tests()


def release(**changes: Any) -> Release:
    given: dict[str, Any] = {"mechanism": MECH, "budget": Budget(1.0), "policy": TextPolicy(), "key": KEY}
    return Release(**{**given, **changes})


def documents(count: int = 40, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    extra = ["zzunknown", "17", "me@x.org", "😀", ".", ",", "Ünïcode", "DON'T"]
    out = []
    for _ in range(count):
        picked = random.choice([*WORDS, *extra], size=random.integers(0, 60))
        out.append(" ".join(w.upper() if random.random() < 0.2 else w for w in picked))
    return out


def run(kernel: Kernel, texts: Sequence[str | None] | pa.Array, ids: Sequence[Any] | None = None) -> list[str | None]:
    column = texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.large_string())
    out, _ = kernel.apply(Documents(column, list(range(len(column))) if ids is None else ids))
    out.validate(full=True)
    result: list[str | None] = out.to_pylist()
    return result


# Batches


@pytest.mark.parametrize(("per", "layout"), [("token", "normalize"), ("document", "keep")])
def test_output_does_not_depend_on_how_batches_are_cut(per: Any, layout: Any) -> None:
    """A document becomes the same text alone, in a batch, and in any slice of a larger buffer."""
    kernel = release(budget=Budget(3.0, per=per), policy=TextPolicy(layout=layout)).kernel()
    texts = documents()
    whole = run(kernel, texts)
    assert whole != texts
    assert [run(kernel, [text], [k])[0] for k, text in enumerate(texts)] == whole
    column = pa.array(texts, pa.large_string())
    for start, length in ((0, 13), (7, 20), (39, 1), (40, 0), (3, 37)):
        ids = list(range(start, start + length))
        assert run(kernel, column.slice(start, length), ids) == whole[start : start + length]
    order = np.random.default_rng(1).permutation(len(texts))
    assert run(kernel, [texts[k] for k in order], order.tolist()) == [whole[k] for k in order]


@pytest.mark.parametrize(("layout", "action"), [("normalize", "drop"), ("keep", "keep"), ("keep", "mask")])
def test_a_long_document_is_worked_on_in_parts_that_do_not_show(
    layout: Any, action: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at blanks of any kind, with blanks at both ends, whatever is dropped; without a blank it stays whole."""
    policy = TextPolicy(layout=layout, unknown_words=action, punctuation=action, other=action, contacts=action)
    kernel = release(policy=policy).kernel()
    odd = ["  ", " \n\t zzz  yyy 12, me@x.org \U0001f600 ", "\u3000\u00a0", "zzz" * 40, *documents(4), None, ""]
    texts = [*odd, "  ".join(filter(None, odd)), "\n".join(documents(8)) + " "]
    column = pa.array(texts, pa.large_string())
    whole, counts = kernel.apply(Documents(column, range(len(texts))))
    for size in (1, 7, 60):
        monkeypatch.setattr(prepared_module, "CHUNK_BYTES", size)
        monkeypatch.setattr(prepared_module, "_WINDOW", 2 * size)
        data, documents_ = string_buffers(column)
        parts = list(prepared_module.parts_of(data, int(documents_[-2]), int(documents_[-1])))
        assert len(parts) > 3
        assert [int(part[0]) for part in parts[1:]] == [int(part[1]) for part in parts[:-1]]
        again, counted = kernel.apply(Documents(column, range(len(texts))))
        assert again.equals(whole)
        assert counted.private() == counts.private()


def test_the_sign_of_an_international_number_goes_with_it() -> None:
    texts = ["+1 415 555 0199", "(+49) 30", "2+2 C++ +a"]
    expected = {"mask": "[number]", "drop": "", "keep": "+1"}
    for numbers, first in expected.items():
        written = run(release(policy=TextPolicy(numbers=numbers, unknown_words="keep")).kernel(), texts)  # type: ignore[arg-type]
        assert (written[0] or "").split(" ")[0] == first, numbers
        assert ("+" in (written[1] or "")) == (numbers == "keep"), numbers
        assert (written[2] or "").count("+") == 4, numbers


# Noise


def test_resampling_follows_the_public_counts() -> None:
    """Unknown words become words drawn from the space's counts; the control, uniform, is rejected."""
    text = " ".join(["zzunknown"] * 20_000)
    (out,) = run(release().kernel(), [text])
    assert out is not None
    ids = np.array([WORDS.index(word) for word in out.split()])
    law = public_weights(SPACE).astype(np.float64) / TOTAL
    assert law == pytest.approx(np.arange(1, 51) / sum(range(51)), rel=1e-9)
    assert fit_p_value(ids, law) > LEVEL
    assert fit_p_value(ids, np.full(50, 1 / 50)) < LEVEL


def test_the_words_of_a_collocation_alone_are_written_apart() -> None:
    """An underscore that joins no two words belongs to its word."""
    mechanism = RingGeometric(small_space(words=["a_", "_b", "c_d", "e__f"], counts=[1] * 4))
    kernel = release(mechanism=mechanism, policy=TextPolicy(layout="keep")).kernel()
    (out,) = run(kernel, ["\n".join(["zzunknown"] * 99)])
    assert out is not None
    assert set(out.split("\n")) == {"a_", "_b", "c d", "e__f"}


def test_resampling_looks_at_the_draw_and_at_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same tag, documents that differ only in which unknown word they have become the same text."""
    tag = np.array([[3, 4]], dtype=np.uint64)
    monkeypatch.setattr(Kernel, "noise_tags", lambda self, key, column, ids, *_: np.repeat(tag, len(ids), axis=0))
    a, b = WORDS[0], WORDS[1]
    for per in ("token", "document"):
        kernel = release(budget=Budget(2.0, per)).kernel()
        texts = [f"{a} {word} {b} ." for word in ("zzone", "Zztwo", "日本", "zz'three", "x" * 500)]
        assert len(set(run(kernel, texts))) == 1
        assert len(set(run(kernel, [f"{a} {number} {b}" for number in ("1", "2,000.5", "3rd", "٣")]))) == 1
    monkeypatch.undo()
    assert len(set(run(kernel, ["zzone " * 20, "zztwo " * 20, "zzthr " * 20], ["a"] * 3))) == 3, "the tag tells them"


# Budgets


class Spy:
    """Notes the words and epsilons that a mechanism is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism = MECH) -> None:
        self.ids: list[list[int]] = []
        self.epsilons: list[float] = []
        ask = type(mechanism).privatize

        def privatize(asked: Any, ids: Any, epsilon: Any, draws: Draws) -> Any:
            self.ids.append(ids.tolist())
            self.epsilons += np.broadcast_to(epsilon, ids.shape).tolist()
            return ask(asked, ids, epsilon, draws)

        monkeypatch.setattr(type(mechanism), "privatize", privatize)

    def spent(self, kernel: Kernel, text: str) -> list[float]:
        """Return the epsilons for a text."""
        self.epsilons.clear()
        run(kernel, [text])
        return list(self.epsilons)


def test_a_document_never_spends_more_than_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum over a document's tokens is at most E, in exact arithmetic, and more than E / 2^(1/8) of a full share."""
    spy = Spy(monkeypatch)
    for budget in (0.3, 10.0, 1e-9):
        kernel = release(budget=Budget(budget, "document")).kernel()
        for count in (1, 3, 7, 333):
            spent = spy.spent(kernel, " ".join((WORDS * 7)[:count]))
            assert len(spent) == count
            assert budget / 2**0.125 * (1 - 1e-12) < sum(map(Fraction, spent)) <= Fraction(budget)


def test_resampled_tokens_count_towards_the_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a word is known changes no other token's epsilon: a reader can count m."""
    spy, kernel = Spy(monkeypatch), release(budget=Budget(8.0, "document")).kernel()
    assert spy.spent(kernel, " ".join(WORDS[:8])) == [1.0] * 8
    assert spy.spent(kernel, " ".join([*WORDS[:5], "zzunknown", "17", WORDS[7]])) == [1.0] * 6
    assert spy.spent(kernel, " ".join([*WORDS[:8], "me@x.org", "\U0001f600", ".", ","])) == [1.0] * 8
    assert set(spy.spent(release(budget=Budget(1.234)).kernel(), " ".join(WORDS))) == {1.234}, "not rounded to the grid"


# Secrets


def test_a_pickled_kernel_holds_neither_key_nor_text() -> None:
    """What is sent to workers draws the same words, and knows neither the master key nor a document."""
    key = another_key()
    kernel = release(key=key).kernel()
    canary = "zzcanaryword"
    before = run(kernel, [canary + " " + " ".join(WORDS)])
    data = pickle.dumps(kernel)
    assert key.secret not in data
    assert key.secret.hex().encode() not in data
    assert canary.encode() not in data
    assert kernel.draw_key.aes in data  # control: this is how a secret would be found
    assert run(pickle.loads(data), [canary + " " + " ".join(WORDS)]) == before


def test_a_worker_with_other_character_tables_stops() -> None:
    """Another Unicode version would tokenize otherwise: the kernel refuses, rather than write other bytes."""
    kernel = dataclasses.replace(release().kernel(), tokenizer_version="1/unicode-1.1")
    with refused("other-version", "unicode-1.1"):
        run(kernel, ["a"])
