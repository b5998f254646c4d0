"""Policies: every class and every policy, the layout, the capitals, and that two words are never run together."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.errors import SettingError
from corpusveil.text.folding import composed_text
from corpusveil.text.output_words import Wording, concatenate
from corpusveil.text.policy import ALL_ROLES, MASKS, POLICIES, ROLE_NAMES, TextPolicy
from corpusveil.text.text_writer import (
    NO_SPAN_TEXTS,
    Decided,
    assign_roles,
    enter,
    output_bound,
    role_table,
    write_text,
)
from corpusveil.text.tokens import Tokenizer
from corpusveil.text.utf8 import CHARACTERS
from tests.calls import texts_of

VOCABULARY = ["river", "the", "élan"]
TOKENIZER = Tokenizer.of_words(VOCABULARY)
STOP = np.array([False, True, False])
DRAWN = 2
"""Every word that is drawn here is *élan*."""


def write(texts: list[str], **fields: Any) -> list[str]:
    """Write texts under a policy, every drawn word being *élan*; checks that the bound on the output holds."""
    policy = TextPolicy(**fields)
    tokens = TOKENIZER.tokenize(texts)
    roles = np.empty(len(tokens), dtype=np.uint8)
    counts = np.zeros(len(ALL_ROLES), dtype=np.int64)
    assign_roles(tokens.classes, tokens.ids, role_table(STOP), roles, counts)
    assert counts.tolist() == np.bincount(roles, minlength=len(ALL_ROLES)).tolist()
    drawn = np.full(len(tokens), DRAWN, dtype=np.int32)
    keep, lower, actions = policy.layout == "keep", policy.case == "lower", policy.actions()
    wording = Wording.build(*concatenate([word.encode() for word in VOCABULARY]), capitals=not lower)
    replaced = np.flatnonzero(actions[roles] <= POLICIES.index("resample")).astype(np.int32)
    size = enter(drawn[replaced], replaced, wording.longest, drawn)
    bound = output_bound(tokens.data.size, counts, actions, size, wording.mask_offsets, keep)
    out = np.zeros(bound + 1000, dtype=np.uint8)
    offsets = np.empty(len(texts) + 1, dtype=np.int64)
    written = write_text(
        tokens.arrays, Decided(roles, actions, drawn), wording, len(VOCABULARY), NO_SPAN_TEXTS, CHARACTERS, keep,
        lower, out, offsets,
    )  # fmt: skip
    assert offsets[-1] <= bound
    assert not out[bound:].any()
    dropped = actions[roles] == POLICIES.index("drop")
    assert written == int((~dropped).sum())
    return [out[a:b].tobytes().decode() for a, b in itertools.pairwise(offsets)]


ALL_KEEP: dict[str, Any] = dict.fromkeys(ROLE_NAMES[1:], "keep")


def test_defaults_are_the_safe_ones() -> None:
    """Nothing of a document is in the clear by default but its punctuation."""
    assert TextPolicy().as_dict() == {
        "unknown_words": "resample", "stop_words": "privatize", "numbers": "resample", "contacts": "mask",
        "punctuation": "keep", "other": "drop", "layout": "normalize", "case": "lower", "tokenizer": "word",
    }  # fmt: skip
    assert write(["The River, Qqq 42 me@x.org 😀!"]) == ["élan élan, élan élan [contact] !"]


EXAMPLES = {
    "unknown_words": ("Qqq", "qqq", "[unknown]"),
    "stop_words": ("The", "the", "[stop]"),
    "numbers": ("3.14KM", "3.14km", "[number]"),
    "contacts": ("Me@X.org", "me@x.org", "[contact]"),
    "punctuation": ("—", "—", "[punctuation]"),
    "other": ("😀", "😀", "[other]"),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_class_under_every_policy(name: str, policy: Any) -> None:
    """A token of each class between two words that the mechanism replaces."""
    if policy == "privatize" and name != "stop_words":
        with pytest.raises(SettingError):
            TextPolicy(**{name: policy})
        return
    token, kept, mask = EXAMPLES[name]
    piece = {"privatize": "élan", "resample": "élan", "mask": mask, "drop": "", "keep": kept}[policy]
    expected = " ".join(["élan", *([piece] if piece else []), "élan"])
    fields = {**ALL_KEEP, name: policy}
    assert write([f"river {token} river"], **fields) == [expected]
    assert mask in MASKS
    if policy == "keep":
        assert write([f"river {token} river"], **fields, case="restore") == [f"élan {token} élan"]


def test_normalized_layout_is_one_blank_where_tokens_stood_apart() -> None:
    assert write([" \n river,\t\u00a0 river .\n\n(river) "]) == ["élan, élan . (élan)"]
    assert write(["", "  ", "river", ",river"]) == ["", "", "élan", ",élan"]


def test_kept_layout_is_the_white_space_as_it_was() -> None:
    text = " \n river,\t\u00a0 river .\u2003\n(river) "
    assert write([text], layout="keep") == [text.replace("river", "élan")]
    assert write([" \n ", "", "river\n"], layout="keep") == [" \n ", "", "élan\n"]
    assert write(["river 😀 river"], layout="keep") == ["élan  élan"]


@pytest.mark.parametrize("layout", ["normalize", "keep"])
def test_what_is_dropped_between_two_words_leaves_a_blank(layout: Any) -> None:
    """Two words are never run together, and punctuation is not torn off its word."""
    assert write(["river😀river"], layout=layout) == ["élan élan"]
    assert write(["river-river"], layout=layout, punctuation="drop") == ["élan élan"]
    assert write(["river😀😀-😀river"], layout=layout, punctuation="drop") == ["élan élan"]
    assert write(["river😀."], layout=layout) == ["élan."]
    assert write(["(😀river)"], layout=layout) == ["(élan)"]
    assert write(["😀river😀"], layout=layout) == ["élan"]
    assert write(["river😀", "😀river"], layout=layout) == ["élan", "élan"]


TEXT = st.lists(st.sampled_from(["river", "The", "Qq", "4", "me@x.org", "😀", ".", "-", "'", " ", "\n", "\x00"]))
FIELDS = st.fixed_dictionaries(
    {name: st.sampled_from(POLICIES[1:]) for name in ROLE_NAMES[1:]}
    | {"layout": st.sampled_from(["normalize", "keep"]), "case": st.sampled_from(["lower", "restore"])}
)


@given(TEXT.map("".join), FIELDS)
@settings(max_examples=300)
def test_as_many_words_come_out_as_go_in(text: str, fields: dict[str, Any]) -> None:
    """Under any policy: a replaced token is one word of the output, with no letter or digit beside it."""
    tokens = TOKENIZER.tokenize([text])
    roles = np.empty(len(tokens), dtype=np.uint8)
    assign_roles(tokens.classes, tokens.ids, role_table(STOP), roles, np.zeros(len(ALL_ROLES), dtype=np.int64))
    actions = TextPolicy(**fields).actions()[roles]
    replaced = int((actions <= POLICIES.index("resample")).sum())
    (out,) = write([text], **fields)
    assert len(re.findall(r"(?<![^\W_])élan(?![^\W_])", out, re.IGNORECASE)) == replaced


@given(st.text(max_size=60), st.sampled_from(["normalize", "keep"]))
@settings(max_examples=200)
def test_everything_kept_is_everything(text: str, layout: Any) -> None:
    """With all classes kept and nothing replaced the composed text comes back, or but for white space."""
    table = TOKENIZER.tokenize([text])
    if (table.ids >= 0).any():
        return
    (out,) = write([text], **ALL_KEEP, layout=layout, case="restore")
    if layout == "keep":
        assert out == composed_text(text)
    else:
        assert texts_of(TOKENIZER.tokenize([out])) == texts_of(table)


def test_capitals_are_restored_only_when_asked_for() -> None:
    assert write(["river River RIVER rIVER"]) == ["élan élan élan élan"]
    assert write(["river River RIVER rIVER"], case="restore") == ["élan Élan ÉLAN élan"]
    assert write(["Qqq QQQ 4KM X"], case="restore") == ["Élan ÉLAN ÉLAN Élan"]


def test_everything_left_in_the_clear_is_named() -> None:
    """What is disclosed follows the policy, class by class."""
    assert len(TextPolicy(**dict.fromkeys(ROLE_NAMES[1:], "drop")).disclosed()) == 3
    for name, words in {
        "numbers": "numbers",
        "contacts": "e-mail",
        "other": "emoji",
        "unknown_words": "outside",
    }.items():
        for policy in ("keep", "mask"):
            assert any(words in line for line in TextPolicy(**{name: policy}).disclosed())
        assert not any(words in line for line in TextPolicy(**{name: "drop"}).disclosed())
    assert any("capitals" in line for line in TextPolicy(case="restore").disclosed())
    assert any("white space" in line for line in TextPolicy(layout="keep").disclosed())
