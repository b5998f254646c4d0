"""Keyed draws against a slow reimplementation in plain Python, and what must tell two draws apart."""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.sampling.blake2b import BLOCK, LANES, keyed_digests
from corpusveil.sampling.draws import MECHANISM, RESAMPLE, DrawKey, Draws, keyed_tags
from corpusveil.sampling.keys import Key
from tests.contracts.mechanism import another_key, draw_key
from tests.contracts.statistics import LEVEL, fit_p_value, independence_p_value

DIGEST = "ab" * 32


def slow_hkdf(secret: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869, from HMAC."""
    pseudo = hmac.new(b"corpusveil key derivation 1", secret, "sha256").digest()
    out, block = b"", b""
    while len(out) < length:
        block = hmac.new(pseudo, block + info + bytes([len(out) // 32 + 1]), "sha256").digest()
        out += block
    return out[:length]


def slow_tag(key: bytes, column: str, identity: bytes, content: bytes) -> int:
    state = hashlib.blake2b(digest_size=16, key=key)
    for part in (column.encode(), identity, content):
        state.update(struct.pack("<Q", len(part)))
        state.update(part)
    return int.from_bytes(state.digest(), "little")


def slow_draw(aes: bytes, tag: int, token: int, purpose: int, attempt: int) -> tuple[int, int]:
    counter = (tag + (token << 64 | purpose << 32 | attempt)) % (1 << 128)
    cipher = Cipher(algorithms.AES(aes), modes.ECB()).encryptor()
    block = cipher.update(counter.to_bytes(16, "little"))
    return int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")


def tag_of(key: DrawKey, column: str, identity: Any, content: bytes) -> tuple[int, ...]:
    data = np.frombuffer(content, dtype=np.uint8)
    return tuple(keyed_tags(key.tag, column, [identity], data, np.array([0, len(content)]))[0].tolist())


def test_keys_are_hkdf_of_key_and_release() -> None:
    """The AES and tag keys are the bytes of RFC 5869 for this digest, and never equal to each other."""
    for key in (Key.for_tests(), another_key()):
        material = slow_hkdf(key.secret, b"draws\0" + bytes.fromhex(DIGEST), 48)
        got = DrawKey.derive(key, DIGEST)
        assert (got.aes, got.tag) == (material[:16], material[16:])
        assert got.aes not in got.tag
        assert DrawKey.derive(key, "ac" * 32).aes != got.aes


@settings(deadline=None)
@given(
    st.binary(min_size=1, max_size=64),
    st.lists(st.tuples(st.integers(1, 2 * BLOCK + 1), st.integers(0, 5 * BLOCK)), max_size=3 * LANES),
    st.integers(0, 40),
    st.randoms(use_true_random=False),
)
def test_digests_in_lanes_are_those_of_hashlib(
    key: bytes, sizes: list[tuple[int, int]], before: int, random: Any
) -> None:
    """Whatever the sizes of heads and texts and where in the batch they stand; read-only data, too."""
    heads, texts = [random.randbytes(head) for head, _ in sizes], [random.randbytes(text) for _, text in sizes]
    data = np.frombuffer(bytes(before) + b"".join(texts), dtype=np.uint8)
    bounds = np.cumsum([0, *map(len, heads)], dtype=np.int64)
    places = before + np.cumsum([0, *map(len, texts)], dtype=np.int64)
    got = keyed_digests(key, np.frombuffer(bytearray().join(heads), dtype=np.uint8), bounds, data, places)
    pairs = zip(heads, texts, strict=True)
    assert got.tobytes() == b"".join(hashlib.blake2b(a + b, digest_size=16, key=key).digest() for a, b in pairs)


@pytest.mark.parametrize("size", [0, 65])
def test_keys_that_hashlib_refuses_or_takes_for_none_are_refused(size: int) -> None:
    nothing, ends = np.empty(0, np.uint8), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="a key of"):
        keyed_digests(bytes(size), nothing, ends, nothing, ends)


IDENTITIES = [
    ("a", b"sa"), ("", b"s"), (b"a", b"ba"), (7, b"s7"), (-1, b"s-1"),
    (("part/x", 3), b"r" + struct.pack("<QQ", 3, 6) + b"part/x"),
    (("c4", "x", 3), b"r" + struct.pack("<QQ", 3, 2) + b"c4" + struct.pack("<Q", 1) + b"x"),
    ("é\ud800", b"s\xc3\xa9\xed\xa0\x80"),
]  # fmt: skip


@pytest.mark.parametrize(("identity", "encoded"), IDENTITIES)
def test_tags_are_keyed_blake2b_of_column_id_and_content(identity: Any, encoded: bytes) -> None:
    key = draw_key(DIGEST)
    for content in (b"", b"x", "Tëxt\x00".encode() * 1000):
        low, high = tag_of(key, "text", identity, content)
        assert low + (high << 64) == slow_tag(key.tag, "text", encoded, content)


def test_tags_differ_with_everything_that_names_a_document() -> None:
    """Column, id, type of id, content, and where one ends and the next begins; also the key."""
    key = draw_key()
    given_ = [
        ("c", "a", b"x"), ("d", "a", b"x"), ("c", "b", b"x"), ("c", b"a", b"x"), ("c", "a", b"y"), ("c", "a", b"x "),
        ("ca", "", b"x"), ("", "ca", b"x"), ("c", "ax", b""), ("c", "", b"ax"), ("csa", "", b""), ("", "", b"csa"),
        ("c", 1, b"x"), ("c", "i1", b"x"), ("c", ("", 1), b"x"),
        ("c", ("1", 1), b"x"), ("c", ("", 11), b"x"),
        ("c", 0, b"x"), ("c", ("a", "b", 1), b"x"), ("c", ("ab", "", 1), b"x"), ("c", ("ab", 1), b"x"),
        ("c", ("", "ab", 1), b"x"),
    ]  # fmt: skip
    tags = {tag_of(key, *one) for one in given_}
    assert len(tags) == len(given_)
    assert not tags & {tag_of(draw_key("11" * 32), *one) for one in given_}


HALF = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**64 - 1, 2**64 - 2**33, 2**64 - (1 << 32)]))


@given(
    st.lists(st.tuples(HALF, HALF), min_size=1, max_size=3),
    st.lists(st.integers(0, 2**40), min_size=1, max_size=6),
    st.integers(1, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=150)
def test_draws_are_aes_of_tag_plus_counter(
    tags: list[tuple[int, int]], positions: list[int], purpose: int, attempt: int
) -> None:
    """Block by block, with every carry into the high half and out of it (mod 2^128)."""
    key = draw_key()
    documents = [k % len(tags) for k in range(len(positions))]
    draws = Draws(key, np.array(tags, np.uint64), np.array(documents, np.int64), np.array(positions, np.int64))
    expected = [
        slow_draw(key.aes, tags[d][0] + (tags[d][1] << 64), position, purpose, attempt)[0]
        for d, position in zip(documents, positions, strict=True)
    ]
    got = draws.uint64(purpose, attempt)
    assert got.dtype == np.uint64
    assert got.tolist() == expected
    assert draws.uint64(purpose, attempt).tolist() == expected


def test_the_second_draw_of_a_pair_is_the_other_half_of_its_block() -> None:
    """Two draws a block: the first as without the second, the two independent."""
    key = draw_key()
    draws = Draws(key, np.array([[5, 2**64 - 1]], np.uint64), np.zeros(9, np.int64), np.arange(9))
    first, second = draws.pair(MECHANISM, 2)
    assert first.tolist() == draws.uint64(MECHANISM, 2).tolist()
    tag = 5 + ((2**64 - 1) << 64)
    expected = [slow_draw(key.aes, tag, t, MECHANISM, 2) for t in range(9)]
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected
    many = [(lane >> np.uint64(60)).astype(np.int64) for lane in Draws.of_tokens(key, 200_000).pair(MECHANISM)]
    assert independence_p_value(many[0], many[1], 16) > LEVEL


def test_lanes_are_uniform_and_a_small_bias_would_show() -> None:
    """Each byte of 400,000 draws is uniform; control: one value in 256 made twice as likely is rejected."""
    draws = Draws.of_tokens(draw_key(), 400_000).uint64(MECHANISM)
    lanes = draws.copy().view(np.uint8).reshape(-1, 8)
    uniform = np.full(256, 1 / 256)
    for byte in range(8):
        assert fit_p_value(lanes[:, byte], uniform) > LEVEL
    biased = uniform.copy()
    biased[77] *= 2
    assert fit_p_value(lanes[:, 0], biased / biased.sum()) < LEVEL
    assert np.unique(draws).size == draws.size


def test_purposes_attempts_positions_and_documents_share_nothing() -> None:
    """Pairs of lanes that could be confused are independent; a lane against itself is not."""
    count = 200_000
    key = draw_key()
    draws = Draws.of_tokens(key, count)
    one = (draws.uint64(MECHANISM) >> np.uint64(60)).astype(np.int64)
    others = [
        draws.uint64(RESAMPLE),
        draws.uint64(MECHANISM, 1),
        np.roll(draws.uint64(MECHANISM), 1),
        Draws.of_tokens(key, count, document="another").uint64(MECHANISM),
        Draws.of_tokens(draw_key("11" * 32), count).uint64(MECHANISM),
        Draws.of_tokens(draw_key(key=another_key()), count).uint64(MECHANISM),
    ]
    for other in others:
        assert independence_p_value(one, (other >> np.uint64(60)).astype(np.int64), 16) > LEVEL
    assert independence_p_value(one, one, 16) < LEVEL
