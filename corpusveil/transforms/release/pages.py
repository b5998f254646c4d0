"""Two pages about a release: a public page beside it, from manifest and space, and a private page in the records."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from corpusveil.budget.budget import written
from corpusveil.display import figure
from corpusveil.errors import BadRecordError
from corpusveil.ledger.caps import cap_sentences
from corpusveil.passages.encoder import LENGTH
from corpusveil.storage import files
from corpusveil.storage.records import Records, Totals
from corpusveil.transforms.release.fit import Unknown
from corpusveil.transforms.release.manifest import read_manifest
from corpusveil.transforms.release.passage_release import FAR, UNKNOWN_KIND
from corpusveil.transforms.release.promises import NO_AUTHOR
from corpusveil.transforms.release.release import AnyRelease, Release
from corpusveil.transforms.release.risk import risk_of
from corpusveil.transforms.release.statement import in_brief

if TYPE_CHECKING:
    import jinja2

    from corpusveil.transforms.release.illustration import Illustration

SHOWN_FILES = 200
UNKNOWN = "unknown.json"
"""The record of unknown words of the first texts."""
PRIVATE = "report.html"
WARNING = "DO NOT PUBLISH: counts computed from private text"
SHARED = ("page.html", "blocks.html")
"""Templates that pages of other packages extend and import."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a page below its title: text, a table, notes.

    A cell of ``rows`` is a text or several lines; a row of one cell is a heading. The columns ``numbers`` are numbers.
    """

    title: str
    text: str = ""
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str | Sequence[str]]] = ()
    numbers: Collection[int] = ()
    look: str = ""
    notes: Sequence[str] = ()
    folded: bool = False


def render_blocks(title: str, intro: str, blocks: Sequence[Block], *, warning: str = "") -> str:
    """Return a page of blocks; ``warning`` says on top why it is not to be published."""
    page = environment().get_template("page.html")
    return page.render(title=title, intro=intro, blocks=blocks, warning=warning)


def public_page(output: str) -> str:
    """Return the address of a release's public page: beside the release, whose folder holds data and manifest only."""
    return output.rstrip("/") + ".report.html"


def write_pages(output: str, records: Records, release: AnyRelease | None, *, page: bool = True) -> None:
    """Write both pages of a finished release, unless they exist; the public one only if a ``page`` is asked for.

    The public page begins with a picture of the ``release``, if that is given.
    """
    is_public_done = not page or files.exists(public_page(output))
    if is_public_done and files.exists(records.address(PRIVATE)):
        return
    manifest = read_manifest(output)
    if not is_public_done:
        files.write_bytes(public_page(output), _rendered(output, lambda: render_public(manifest, _picture(release))))
    totals = records.read("totals.json", Totals)
    if totals is not None:
        private = _rendered(records.url, lambda: render_private(manifest, totals, records.read(UNKNOWN, Unknown)))
        files.write_bytes(records.address(PRIVATE), private, private=True)


def _picture(release: AnyRelease | None) -> Illustration | None:
    if not isinstance(release, Release):
        return None
    from corpusveil.transforms.release.illustration import illustrate  # which only a page needs

    parts = release.mechanism, release.budget, release.policy, release.collocations
    return illustrate(*parts, spans=release.spans)


def _rendered(where: str, render: Callable[[], str]) -> bytes:
    """Return a page. Raises UserError if its data were changed so that it cannot be made."""
    from jinja2 import TemplateError  # here, and below: previews and workers make no page

    try:
        return render().encode()
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, TemplateError):
        raise BadRecordError(
            f"{where}: the data of this page are damaged; restore the manifest and the records."
        ) from None


def render_public(manifest: dict[str, Any], picture: Illustration | None = None) -> str:
    """Return the public page: a picture of the release's effect on a public sentence, and its manifest in words."""
    given = manifest["configuration"]["budget"]
    words = f"epsilon {written(given['epsilon'])} a {given['per']}"
    if "allocation" in given and given["per"] == "document":
        words += f", shared {given['allocation']}"
    guarantee, of_passages = manifest["guarantee"], "store" in manifest["configuration"]
    brief = " ".join(manifest["guarantee_in_words"][:1]) if of_passages else ""
    if guarantee["epsilon"] is not None and not of_passages:
        brief = in_brief(guarantee["plain_ldp"], given["epsilon"], given["per"])
    keep = manifest["configuration"]["columns"]["keep"]
    page = environment(__package__, "public.html").get_template("public.html")
    return page.render(
        of_passages=of_passages, no_author=NO_AUTHOR, risk=risk_of(manifest), m=manifest, budget=words,
        brief=brief[:1].upper() + brief[1:], caps=cap_sentences(manifest.get("cap")), keep=keep,
        shown=SHOWN_FILES, figure=figure, picture=picture,
    )  # fmt: skip


def render_private(manifest: dict[str, Any], totals: Totals, unknown: Unknown | None = None) -> str:
    """Return the page of counts from the input, with words that the space lacks; it is as private as the input."""
    policy = manifest["configuration"]["text"] | {"spans": _treatments(manifest)}
    # where they are treated as words, stop words are counted among these
    tokens = {name: n for name, n in totals.tokens.items() if n or name != "stop_words"}
    whole = max(sum(tokens.values()), 1)
    from markupsafe import Markup

    meter = Markup('<meter value="{}">{}</meter>')
    classes = [
        (
            name.replace("_", " "), policy.get(name, "privatize"), f"{tokens[name]:,}", _share(tokens[name], whole),
            meter.format(tokens[name] / whole, _share(tokens[name], whole)),
        )
        for name in tokens
    ]  # fmt: skip
    privatized, unchanged = totals.privatized, totals.unchanged
    facts = [
        ("Known words, which the mechanism replaced", f"{privatized:,}"),
        ("Of these, unchanged in the output", f"{unchanged:,} ({_share(unchanged, max(privatized, 1))})"),
        ("Documents most of whose words the space lacks, as in another language", f"{totals.foreign:,}"),
        ("Rows set aside", f"{totals.quarantined:,}"),
        ("Copies, and documents above a cap, left out", f"{totals.dropped:,}"),
        ("Input", f"{totals.input_bytes:,} bytes of text"),
        ("Processing time", f"{totals.seconds:,.1f} s, over all processes"),
    ]
    intro = (
        f"Release {manifest['spends']['name']}: {totals.documents:,} documents written, {totals.tokens_written:,} "
        "tokens."
    )
    if "store" in manifest["configuration"]:
        return render_blocks(
            "What this run did to the corpus",
            intro.replace("tokens", "pieces"),
            [_of_pieces(totals, manifest["store"].get("similarity"))],
            warning=WARNING,
        )
    blocks = (
        Block("Tokens by class and policy", heads=("Class", "Policy", "Tokens", "Share of tokens", ""), rows=classes,
              numbers=(2, 3)),
        Block("What the mechanism did", rows=facts),
        Block("Recognized spans", heads=("Kind", "Spans"), numbers=(1,),
              rows=[(kind, f"{count:,}") for kind, count in totals.spans.items()]),
        Block("Words of the first texts that look like missed names", heads=("Word", "Rows of the first shard"),
              rows=[(name, ", ".join(map(str, rows))) for name, rows in (unknown.names if unknown else {}).items()]),
        Block("Unknown words of the first texts", heads=("Word", "Times"), numbers=(1,),
              rows=[] if unknown is None else [(word, f"{count:,}") for word, count in unknown.words.items()]),
    )  # fmt: skip
    return render_blocks("What this run did to the corpus", intro, blocks, warning=WARNING)


def _of_pieces(totals: Totals, usual: float | None) -> Block:
    """Return what the store made of the pieces of the input; ``usual`` is the similarity of its own left-out texts."""
    read = max(1, totals.tokens_written - totals.unread)
    near = totals.similarity / read / LENGTH**2
    beside = [] if usual is None else [("The same of public texts like the store's", f"{usual:.2f}")]
    notes = [UNKNOWN_KIND[:1].upper() + UNKNOWN_KIND[1:]] if usual is not None and near < usual - FAR else []
    return Block("What the store knew of these texts", notes=notes, rows=[
        ("Pieces that were replaced", f"{totals.privatized:,}"),
        ("Of these, without a word that the space knows", f"{totals.unread:,}"),
        ("Mean similarity of a piece and what replaced it, 1 for equal topics", f"{near:.2f}"),
        *beside,
        ("Rows set aside", f"{totals.quarantined:,}"),
        ("Copies that were left out", f"{totals.dropped:,}"),
        ("Input", f"{totals.input_bytes:,} bytes of text"),
        ("Processing time", f"{totals.seconds:,.1f} s, over all processes"),
    ])  # fmt: skip


def _treatments(manifest: dict[str, Any]) -> str:
    """Return what is written for spans, by kind."""
    treat = manifest["configuration"].get("spans", {}).get("treat") or {}
    pairs = treat.items() if isinstance(treat, dict) else treat
    return ", ".join(f"{kind} {how}" for kind, how in pairs) or "mask"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def percent(share: float) -> str:
    """Write a probability. Values near 0 or 1 are not rounded to 0 or 1."""
    if 0 < share < 0.001 or 0.999 < share < 1:
        return "<0.1 %" if share < 0.5 else ">99.9 %"
    return f"{100 * share:.{0 if 0.0995 <= share <= 0.99 or share in (0, 1) else 1}f} %"


@functools.lru_cache
def environment(package: str = __package__, *names: str) -> jinja2.Environment:
    """Return the templates of these names in a package's folder ``templates``, with the shared templates."""
    places = [(package, name) for name in names] + [(__package__, name) for name in SHARED]
    import jinja2

    texts = {name: (resources.files(room) / "templates" / name).read_text(encoding="utf-8") for room, name in places}
    made = jinja2.Environment(
        loader=jinja2.DictLoader(texts), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    made.filters["percent"] = percent
    made.globals["warning"] = ""
    return made
