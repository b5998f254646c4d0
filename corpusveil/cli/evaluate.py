"""``corpusveil evaluate``: measure the privacy and the utility of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpusveil.choices import Separator
from corpusveil.cli.options import OutputOption, space_folder
from corpusveil.errors import OverlapError, PackageError
from corpusveil.evaluation.defaults import DOCUMENTS

if TYPE_CHECKING:
    from corpusveil.evaluation.statistics.figure import Figure

app = typer.Typer(
    help="Measure what a release discloses and how useful it still is.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command("release")
def release(
    original: Annotated[str, typer.Argument(help="The corpus: a file, folder or glob.", metavar="ORIGINAL")],
    private: Annotated[
        str, typer.Argument(help="The private version: the folder of a release, or files.", metavar="PRIVATE")
    ],
    output: OutputOption,
    space: Annotated[
        str | None,
        typer.Option(
            help="The space of the release; enables informed attackers, similarity and further epsilons.",
            metavar="URL",
            callback=space_folder,
        ),
    ] = None,
    collocations: Annotated[
        str | None, typer.Option(help="The collocations of the release, if it has any.", metavar="URL")
    ] = None,
    text: Annotated[str, typer.Option(help="The column with the text.", metavar="COLUMN")] = "text",
    private_text: Annotated[
        str | None,
        typer.Option(help="The same column in the private files. Default: as in the original.", metavar="COLUMN"),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(help="A column of both that identifies documents. Default: position.", metavar="COLUMN"),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="A column of the original that a model should still be able to predict.", metavar="COLUMN"),
    ] = None,
    attribute: Annotated[
        str | None,
        typer.Option(help="A column of the original that no attacker should be able to infer.", metavar="COLUMN"),
    ] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Also try this epsilon, under throwaway keys. Repeatable.")
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(help="Also try this mechanism in the same space, at each --epsilon. Repeatable.", metavar="NAME"),
    ] = None,
    second: Annotated[
        str | None, typer.Option(help="A column of the original with the second texts of pairs.", metavar="COLUMN")
    ] = None,
    second_private: Annotated[
        str | None,
        typer.Option(
            help="A release or files with the private second texts. Default: second texts stay as they are.",
            metavar="URL",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model and attacker: tfidf (default) or vectors, with logistic regression, or the folder of a "
            "transformers model to fine-tune. Repeatable; the first is also used at further epsilons.",
            metavar="NAME",
        ),
    ] = None,
    leaked_key: Annotated[
        list[str] | None,
        typer.Option(
            help="Report what someone who holds this key could recover. Repeatable. Needs --space.", metavar="PATH"
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            help=(
                "For --leaked-key: the name of the corpus in the release, as in 'privatize --corpus'. Default: its "
                "folder."
            ),
            metavar="NAME",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of splits, and of keys for further epsilons.", min=2)] = 5,
    documents: Annotated[int, typer.Option(help="Evaluate an even sample of this many documents.", min=10)] = DOCUMENTS,
    counts: Annotated[
        str | None,
        typer.Option(
            help="Public n-gram counts for the language model. Default: half of the originals.", metavar="URL"
        ),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="A sentence encoder on this machine: a folder or package.", metavar="PATH")
    ] = None,
    similarity_vectors: Annotated[
        str | None,
        typer.Option(
            help=(
                "Word vectors for similarity of meaning, from an embedding other than that of the space. Default: the "
                "vectors of the space, which flatter the mechanism."
            ),
            metavar="FILE",
        ),
    ] = None,
    causal: Annotated[
        list[str] | None,
        typer.Option(help="A causal language model on this machine, for perplexity: a folder.", metavar="PATH"),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(
            help="A list of words, one a line. Default: /usr/share/dict/words, or the words of the space.",
            metavar="URL",
        ),
    ] = None,
    separator: Annotated[
        Separator, typer.Option(help="The separator of CSV cells, in the original and in the private files.")
    ] = "comma",
    publishable: Annotated[
        bool, typer.Option("--publishable", help="Leave out all texts and all figures that were counted in the input.")
    ] = False,
) -> None:
    """Compare a release with its original: a page, JSON and CSV. They show original text, so they are private.

    Example: corpusveil evaluate release reviews.parquet private/reviews --space spaces/glove --label stars
    --attribute gender --epsilon 1 --epsilon 5 --output evaluation
    """
    from corpusveil.collocations.collocation_table import load_collocations
    from corpusveil.evaluation.report.beside_original import evaluate_release
    from corpusveil.evaluation.report.release_page import write_report
    from corpusveil.evaluation.statistics import registry
    from corpusveil.evaluation.statistics.encoders import SentenceEncoder
    from corpusveil.sampling.keys import Key
    from corpusveil.spaces import load_space
    from corpusveil.spaces.vectors import read_vectors
    from corpusveil.storage import files
    from corpusveil.storage.inputs import lies_in_input

    for folder in (original, private, *([] if second_private is None else [second_private])):
        if lies_in_input(output, folder, ("report.csv", "report.json", "report.html")):
            raise OverlapError(
                f"--output {output}: this is in {folder}, which the report is not part of; choose another folder."
            )
    files.check_folder(output)  # report an unwritable output now, not after all the work
    found = evaluate_release(
        original, private, text=text, private_text=private_text, id=id, label=label, attribute=attribute, second=second,
        second_private=second_private, space=None if space is None else load_space(space),
        collocations=None if collocations is None else load_collocations(collocations), epsilons=epsilon or (),
        mechanisms=mechanism or (), models=model or ("tfidf",), keys=[Key.load(path) for path in leaked_key or ()],
        seeds=seeds, documents=documents, corpus=corpus, counts=counts,
        encoder=None if encoder is None else SentenceEncoder(encoder),
        vectors=None if similarity_vectors is None else read_vectors(similarity_vectors), causal=causal or (),
        words=words, separator=separator,
    )  # fmt: skip
    shown = found.publishable() if publishable else found
    first = shown.first()
    for one in first:
        print(_line(one, registry.find(one.name).of))
    if first:
        print("\nAll other figures:")
    for one in shown.measures:
        if one not in first:
            print(_line(one, registry.find(one.name).of))
    page = write_report(found, output, publishable=publishable)
    print(f"{page}{'' if publishable else ' (private: it shows original text)'}, {found.seconds:.0f} s")


def _line(one: Figure, of: str) -> str:
    """Return a figure as the terminal shows it; ``of`` names the words of which it is a share."""
    where = [
        f" ({of})" if of else "",
        "" if one.epsilon is None else f" at epsilon {one.epsilon:.4g}",
        f" by {one.mechanism}" if one.mechanism else "",
        "" if one.risk is None else f" at risk {one.risk:g}",
        f" [{one.model}]" if one.model else "",
    ]
    floor = "" if one.floor is None else f" (floor {one.floor:.1%})"
    less = f"; difference from original {one.less}" if one.less else ""
    return f"{one.name}{''.join(where)}: {one}{floor}{less}"


@app.command("study", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def study() -> None:
    """Run a published study (needs corpusveil-studies, whose command replaces this one)."""
    raise PackageError("The published studies are a package of their own: pip install corpusveil-studies.")
