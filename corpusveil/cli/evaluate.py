"""``corpusveil evaluate``: what a release gives away and is still good for, and the published studies."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from corpusveil.cli.options import OutputOption
from corpusveil.cli.study import study
from corpusveil.collocations.table import load_collocations
from corpusveil.errors import UserError
from corpusveil.evaluation.findings import Measure
from corpusveil.evaluation.matching import MOST, match
from corpusveil.evaluation.question import Question
from corpusveil.evaluation.release import evaluate_release
from corpusveil.evaluation.report import write_report
from corpusveil.evaluation.similarity import SentenceEncoder
from corpusveil.sampling.keys import Key
from corpusveil.spaces import load_space
from corpusveil.storage import files
from corpusveil.storage.inputs import lies_in_input
from corpusveil.storage.shapes import fits, line
from corpusveil.transforms.manifest import read_manifest

app = typer.Typer(help="What a release gives away, and what it is still good for.", no_args_is_help=True)


@app.command("release")
def release(
    original: Annotated[str, typer.Argument(help="The corpus: a file, folder or glob.", metavar="ORIGINAL")],
    private: Annotated[
        str, typer.Argument(help="What was made of it: a release's folder, or files.", metavar="PRIVATE")
    ],
    output: OutputOption,
    space: Annotated[
        str | None,
        typer.Option(
            help="The release's space: attackers who know the mechanism, similarity, more epsilons.", metavar="URL"
        ),
    ] = None,
    collocations: Annotated[
        str | None, typer.Option(help="The release's collocations, where it has some.", metavar="URL")
    ] = None,
    text: Annotated[str, typer.Option(help="The column with the text.", metavar="COLUMN")] = "text",
    private_text: Annotated[
        str | None, typer.Option(help="The same in the private files; default: as in the original.", metavar="COLUMN")
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(help="A column of both that tells documents apart; default: position.", metavar="COLUMN"),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="A column of the original that a model should still learn.", metavar="COLUMN")
    ] = None,
    attribute: Annotated[
        str | None, typer.Option(help="A column of the original that no attacker should learn.", metavar="COLUMN")
    ] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Try this epsilon too, under keys that are thrown away; repeatable.")
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(help="Try this mechanism too, at each --epsilon, in the same space; repeatable.", metavar="NAME"),
    ] = None,
    second: Annotated[
        str | None, typer.Option(help="A column of the original with second texts, of pairs.", metavar="COLUMN")
    ] = None,
    second_private: Annotated[
        str | None,
        typer.Option(
            help="A release or files with the private second texts; default: they stay as they are.", metavar="URL"
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model and attacker: tfidf (default) or vectors, with logistic regression, or the folder of a "
            "transformers model to fine-tune; repeatable, the first also at further epsilons.",
            metavar="NAME",
        ),
    ] = None,
    leaked_key: Annotated[
        list[str] | None,
        typer.Option(help="What would who has this key file get back; repeatable. Needs --space.", metavar="PATH"),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Splits, and keys of further epsilons.", min=2)] = 5,
    documents: Annotated[int, typer.Option(help="Of more documents an even sample.", min=10)] = MOST,
    counts: Annotated[
        str | None,
        typer.Option(
            help="Public n-gram counts for the language model; default: half of the originals.", metavar="URL"
        ),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="A sentence encoder on this machine: a folder or package.", metavar="PATH")
    ] = None,
    causal: Annotated[
        list[str] | None,
        typer.Option(help="A causal language model on this machine, for perplexity: a folder.", metavar="PATH"),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(
            help="A list of words, one a line; default: /usr/share/dict/words, or else the space's.", metavar="URL"
        ),
    ] = None,
    publishable: Annotated[
        bool, typer.Option("--publishable", help="Leave out texts and everything that was counted in the input.")
    ] = False,
) -> None:
    """Hold a release against its original: a page, JSON and CSV. They show original text: private, unless publishable.

    Example: corpusveil evaluate release reviews.parquet private/reviews --space spaces/glove --label stars
    --attribute gender --epsilon 1 --epsilon 5 --output evaluation
    """
    for folder in (original, private, *([] if second_private is None else [second_private])):
        if lies_in_input(output, folder, ("report.csv", "report.json", "report.html")):
            raise UserError(
                f"--output {output}: this is in {folder}, which the report is no part of; name another folder."
            )
    if second is None and second_private is not None:
        raise UserError("--second-private: these are the second texts of pairs; name their column with --second.")
    manifest = _manifest(private)
    columns = [name for name in (label, attribute, second) if name is not None]
    if len(set(columns)) < len(columns):
        raise UserError("--label, --attribute and --second are different columns; one is named twice.")
    question = Question(
        label, attribute, second, tuple(epsilon or ()), seeds, tuple(model or ("tfidf",)),
        None if space is None else load_space(space),
        None if collocations is None else load_collocations(collocations),
        None if encoder is None else SentenceEncoder(encoder), counts,
        tuple(mechanism or ()), tuple(Key.load(path) for path in leaked_key or ()), words, tuple(causal or ()),
    )  # fmt: skip
    pairs = None if second is None or second_private is None else (second, [second_private])
    files.check_folder(output)  # what can't be written is told now, and not after all the work
    matched = match(
        [original], [private], text=text, private_text=private_text, id=id, columns=columns, second=pairs,
        most=documents,
    )  # fmt: skip
    others = None if second_private is None else _manifest(second_private)
    found = evaluate_release(matched, manifest, question, others)
    for one in (found.publishable() if publishable else found).measures:
        print(_line(one))
    page = write_report(found, output, publishable=publishable)
    print(f"{page}{'' if publishable else ' (private: it shows original text)'}, {found.seconds:.0f} s")


def _line(one: Measure) -> str:
    """Return a figure as the terminal shows it."""
    where = [
        f" ({one.of})" if one.of else "",
        "" if one.epsilon is None else f" at epsilon {one.epsilon:.4g}",
        f" by {one.mechanism}" if one.mechanism else "",
        "" if one.risk is None else f" at risk {one.risk:g}",
        f" [{one.model}]" if one.model else "",
    ]
    floor = "" if one.floor is None else f" (floor {one.floor:.1%})"
    less = f"; less original {one.less} points" if one.less else ""
    return f"{one.name}{''.join(where)}: {one}{floor}{less}"


_SHAPE = {
    "configuration": {"space": line, "mechanism": {"name": line}, "budget": dict, "text": dict},
    "guarantee_in_words": [str],
    "guarantee": {"disclosed": [str]},
}


def _manifest(private: str) -> dict[str, Any] | None:
    """Return the manifest, None where the private texts are no release. Raises UserError when it is damaged."""
    address = files.join(private, "manifest.json")
    if not files.exists(address):
        return None
    manifest = read_manifest(private)
    if not fits(manifest, _SHAPE):
        raise UserError(f"{address}: this manifest is damaged; restore it from a copy of the release.")
    return manifest


app.command("study")(study)
