"""``corpusveil evaluate release``, ``readers``, ``model`` and others: the commands, except that of studies."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.cli.derived import derived
from corpusveil.pipelines.settings import Settings
from corpusveil_evaluate.settings import COMMAND

Space = Annotated[
    str, typer.Option(help="The space of words: a folder, a URL, or an installed name such as en.", metavar="URL")
]
Mechanism = Annotated[str, typer.Option(help="The mechanism. 'corpusveil mechanisms' lists all.", metavar="NAME")]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        help="A parameter of the mechanism, such as gamma=18. Repeatable. Default: the mechanism's own.",
        metavar="NAME=VALUE",
    ),
]
StopWords = Annotated[
    str, typer.Option(help="What happens to stop words: privatize, resample, mask, drop or keep.", metavar="POLICY")
]
MODEL = "The language model of the reader: a folder or URL that 'evaluate model' writes, or en."
Model = Annotated[str, typer.Option(help=MODEL, metavar="URL")]


@derived(COMMAND)
def release(settings: Settings) -> None:
    """Compare a release with its original. The page, JSON and CSV show original text, so they are private.

    Example: corpusveil evaluate release reviews.parquet private/reviews --space spaces/glove --label stars
    --attribute gender --output evaluation
    """
    from corpusveil.cli.options import Terminal
    from corpusveil_evaluate.report.beside_original import run

    run(settings, Terminal())


def readers(
    space: Space,
    epsilon: Annotated[float, typer.Option(help="The epsilon of a word, above 0.", metavar="NUMBER")],
    mechanism: Mechanism = "ring-geometric",
    parameter: Parameters = None,
    model: Annotated[str | None, typer.Option(help=f"{MODEL} Default: readers without a model.", metavar="URL")] = None,
    stop_words: StopWords = "privatize",
    texts: Annotated[
        str | None,
        typer.Option("--text", help="Public texts that the model has not counted. Default: none.", metavar="FILE"),
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="Also write the figures as JSON to this file. Default: none.", metavar="URL")
    ] = None,
) -> None:
    """Print the share of words that each of several readers guesses. Reads public data only.

    Example: corpusveil evaluate readers --space en --epsilon 1 --model en
    """
    import dataclasses
    import json

    from corpusveil.mechanisms import make_mechanism
    from corpusveil.pipelines.fields import pairs
    from corpusveil.spaces import load_space
    from corpusveil.storage import files
    from corpusveil.text.policy import TextPolicy
    from corpusveil_evaluate.readers.ladder import reader_ladder
    from corpusveil_evaluate.readers.ngrams.modelling import load_model

    policy = TextPolicy(stop_words=stop_words)  # type: ignore[arg-type]
    made = make_mechanism(mechanism, load_space(space), **pairs("parameter", parameter or []))
    known = None if model is None else load_model(model)
    ladder = reader_ladder(made, epsilon, known, [] if texts is None else _texts_of(texts), policy=policy)
    print(ladder)
    if output is not None:
        files.write_bytes(output, (json.dumps(dataclasses.asdict(ladder), indent=1) + "\n").encode())


def model(
    counts: Annotated[str, typer.Option(help="Public n-gram counts, which 'corpusveil count' writes.", metavar="URL")],
    output: Annotated[str, typer.Option(help="The model: a new folder or URL.", metavar="URL")],
    min_count: Annotated[int, typer.Option(help="Leave out n-grams that occur fewer times.", min=1, metavar="N")] = 1,
) -> None:
    """Make the readers' language model (Kneser-Ney trigrams) from public n-gram counts. It must fit into memory.

    Example: corpusveil evaluate model --counts counts/c4 --output models/c4 --min-count 2
    """
    from corpusveil_evaluate.readers.ngrams.modelling import build_model

    made = build_model(counts, output, min_count)
    sizes = ", ".join(f"{made[name]:,} {name}" for name in ("words", "bigrams", "trigrams"))
    print(f"{output}: {sizes}\nsha256 {made['digest']}")


def denoise(
    release: Annotated[str, typer.Argument(help="The release by words: its folder or URL.", metavar="RELEASE")],
    space: Space,
    model: Model,
    output: Annotated[
        str, typer.Option(help="The guessed texts: a new .jsonl file with a line for each row.", metavar="URL")
    ],
    collocations: Annotated[
        str | None, typer.Option(help="The collocation table of the release. Default: none.", metavar="URL")
    ] = None,
    margin: Annotated[
        float,
        typer.Option(help="How many nats likelier a guess must be to replace a rare released word, 0 or more."),
    ] = 0.4,
) -> None:
    """Guess the originals of a release, as a reader would. Reads no private data and spends nothing.

    Example: corpusveil evaluate denoise released --space en --model en --output readable.jsonl
    """
    from corpusveil.collocations.collocation_table import load_collocations
    from corpusveil.spaces import load_space
    from corpusveil_evaluate.readers.ngrams.denoise import NO_FACTS, Search
    from corpusveil_evaluate.readers.ngrams.denoised_texts import denoise_release
    from corpusveil_evaluate.readers.ngrams.modelling import load_model

    written = denoise_release(
        release, output, space=load_space(space), model=load_model(model),
        collocations=None if collocations is None else load_collocations(collocations), search=Search(margin=margin),
    )  # fmt: skip
    print(f"{output}: {written:,} texts, for which the guarantee of {release} holds if the model is public.")
    print(NO_FACTS)


def risk(
    space: Space,
    model: Model,
    texts: Annotated[
        str, typer.Option("--text", help="Public texts that the model has not counted.", metavar="FILE")
    ],
    output: Annotated[str, typer.Option(help="A copy of the space, with the table: a new URL.", metavar="URL")],
    mechanism: Mechanism = "ring-geometric",
    parameter: Parameters = None,
    stop_words: StopWords = "privatize",
) -> None:  # fmt: skip
    """Measure what a reader recovers at each epsilon, for 'privatize --risk'. Reads public data only.

    The table is part of a space, so the output is a new space.

    Example: corpusveil evaluate risk --space spaces/c4 --model models/c4 --text news.jsonl --output spaces/c4-risk
    """
    from corpusveil.mechanisms import make_mechanism
    from corpusveil.pipelines.fields import pairs
    from corpusveil.spaces import load_space
    from corpusveil.text.policy import TextPolicy
    from corpusveil_evaluate.readers.ngrams.modelling import load_model
    from corpusveil_evaluate.readers.risk_table import measured_space

    policy = TextPolicy(stop_words=stop_words)  # type: ignore[arg-type]
    made = make_mechanism(mechanism, load_space(space), **pairs("parameter", parameter or []))
    saved = measured_space(made, load_model(model), _texts_of(texts), policy).save(output)
    print(f"{output}: sha256 {saved.digest}")


def _texts_of(url: str) -> list[str]:
    """Return the texts of a file."""
    from corpusveil.storage import files, formats
    from corpusveil.storage.rows import Columns

    with files.open_read(url) as file:
        form = formats.form_of(url)
        return [text or "" for batch in form.batches(file, url, Columns()) for text in batch.texts.to_pylist()]


def audit(
    original: Annotated[
        str | None, typer.Argument(help="The originals: a file, folder or glob.", metavar="ORIGINAL")
    ] = None,
    private: Annotated[
        str | None, typer.Argument(help="The release of the originals: its folder or URL.", metavar="RELEASE")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="The store of a release by passages: a URL or name. Default: none.", metavar="URL"),
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(help="The space of a release by words, or of the mechanism. Default: none.", metavar="URL"),
    ] = None,
    text: Annotated[str, typer.Option(help="The column that has the text, in both.", metavar="COLUMN")] = "text",
    id: Annotated[
        str | None, typer.Option(help="A kept column that identifies rows. Default: position.", metavar="COLUMN")
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(
            help="The original column of texts that cv.hold_out left out. Default: no such texts.", metavar="COLUMN"
        ),
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="A mechanism to check instead of a release. Default: none.", metavar="NAME")
    ] = None,
    parameter: Parameters = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="The epsilon of a word, above 0; a mechanism needs it. Default: none.", metavar="NUMBER"),
    ] = None,
    claim: Annotated[
        bool, typer.Option("--claim", help="Check the claim of the mechanism's paper instead of its guarantee.")
    ] = False,
    output: Annotated[
        str | None, typer.Option(help="Also write the audit of a mechanism as JSON. Default: none.", metavar="URL")
    ] = None,
) -> None:
    """Check the texts of a release, or the guarantee of a mechanism. The exit status is 1 if it is refuted.

    Example: corpusveil evaluate audit half.jsonl private/half --store en --held-out held_out

    Example: corpusveil evaluate audit --space en --mechanism ring-geometric --epsilon 1
    """
    from corpusveil.errors import SettingError

    of_release, of_mechanism = (original, private, store, id, held_out), (parameter, epsilon, claim or None, output)
    if any(given is not None for given in (of_release if mechanism else of_mechanism)):
        raise SettingError(
            "An audit checks a release (ORIGINAL RELEASE, --store or --space) or a mechanism (--space --mechanism "
            "--epsilon); give what belongs to one of them."
        )
    if mechanism is not None:
        if space is None or epsilon is None:
            raise SettingError("An audit of a mechanism needs --space and --epsilon; give both.")
        refuted = _audit_mechanism(mechanism, parameter or [], space, epsilon, claim, output)
    elif original is None or private is None:
        raise SettingError("Give the originals and the folder of their release, or a mechanism by --mechanism.")
    else:
        refuted = _audit_release(original, private, store, space, text, id, held_out)
    raise typer.Exit(int(refuted))


def _audit_mechanism(
    name: str, parameters: list[str], space: str, epsilon: float, claim: bool, output: str | None
) -> bool:
    import json

    from corpusveil.mechanisms import make_mechanism
    from corpusveil.pipelines.fields import pairs
    from corpusveil.spaces import load_space
    from corpusveil.storage import files
    from corpusveil_evaluate.audits.guarantee_audit import audit

    made = make_mechanism(name, load_space(space), **pairs("parameter", parameters))
    audited = audit(made, epsilon, claim=claim)
    print("\n".join(audited.lines()))
    if output is not None:
        files.write_bytes(output, (json.dumps(audited.as_dict(), indent=1) + "\n").encode())
    return audited.refuted


def _audit_release(
    original: str, private: str, store: str | None, space: str | None, text: str, id: str | None, held_out: str | None
) -> bool:
    import corpusveil as cv
    from corpusveil.transforms.release.manifest import read_manifest
    from corpusveil_evaluate.attacks.held_out import HeldOutAudit, LawFit, audit_fit, audit_held_out
    from corpusveil_evaluate.matching import match
    from corpusveil_evaluate.report.manifest_release import stated_release

    opened = (cv.load_store(store) if store else None), (cv.load_space(space) if space else None)
    release = stated_release(read_manifest(private), *opened)
    matched = match([original], [private], text=text, id=id, columns=[held_out] if held_out else [])
    checks: list[HeldOutAudit | LawFit] = [audit_fit(release, matched.originals, matched.privates)]
    if held_out:
        checks.append(audit_held_out(release, matched.originals, matched.columns[held_out], matched.privates))
    print("\n".join(map(str, checks)))
    return any(check.refuted for check in checks)
