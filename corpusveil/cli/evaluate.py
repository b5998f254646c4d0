"""``corpusveil evaluate``: what a release gives away and is still good for, and the published studies."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from corpusveil.cli.engines import make_engine
from corpusveil.cli.options import MasterOption, OutputOption, ProgressOption, WorkersOption
from corpusveil.cli.progress import stage_watcher
from corpusveil.collocations.table import load_collocations
from corpusveil.errors import UserError
from corpusveil.evaluation.findings import Measure
from corpusveil.evaluation.matching import MOST, match
from corpusveil.evaluation.question import Question
from corpusveil.evaluation.release import evaluate_release
from corpusveil.evaluation.report import write_report
from corpusveil.evaluation.similarity import SentenceEncoder
from corpusveil.evaluation.studies.grids import read_grid, written
from corpusveil.evaluation.studies.ground import Sources
from corpusveil.evaluation.studies.pages import lines
from corpusveil.evaluation.studies.run import plan as plan_lines
from corpusveil.evaluation.studies.run import ready, run_study
from corpusveil.evaluation.studies.study import STUDIES, find
from corpusveil.sampling.keys import Key
from corpusveil.spaces import load_space
from corpusveil.storage import files
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
        if f"{files.absolute(output)}/".startswith(f"{files.absolute(folder.rstrip('/'))}/"):
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


@app.command("study")
def study(
    name: Annotated[str | None, typer.Argument(help="The study; --list names them.", metavar="NAME")] = None,
    output: Annotated[
        str | None, typer.Option(help="A folder for cells, tables and page; the same again goes on.", metavar="DIR")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small grid: minutes on two cores.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="Name the studies and end.")] = False,
    data: Annotated[
        str | None,
        typer.Option(help="Data sets, NAME.parquet with text, label, split; default: bundled text.", metavar="DIR"),
    ] = None,
    vectors: Annotated[
        list[str] | None, typer.Option(help="Word vectors, repeatable; default: trained here.", metavar="FILE")
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(help="Public text to count and train on, repeatable; default: bundled text.", metavar="INPUT"),
    ] = None,
    text: Annotated[str, typer.Option(help="The corpus' column with the text.", metavar="COLUMN")] = "text",
    model: Annotated[
        str,
        typer.Option(help="Classifier: tfidf, vectors, lstm, or the folder of a model to fine-tune.", metavar="NAME"),
    ] = "tfidf",
    encoder: Annotated[
        str | None, typer.Option(help="A sentence encoder on this machine: a folder or package.", metavar="PATH")
    ] = None,
    collection: Annotated[str | None, typer.Option(help="pypantera: passages to search.", metavar="FILE")] = None,
    queries: Annotated[str | None, typer.Option(help="pypantera: queries.", metavar="FILE")] = None,
    qrels: Annotated[str | None, typer.Option(help="pypantera: judgements, in TREC's form.", metavar="FILE")] = None,
    config: Annotated[str | None, typer.Option(help="Keys of the grid that are other.", metavar="FILE")] = None,
    print_config: Annotated[bool, typer.Option("--print-config", help="Print the grid and end.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Prepare, say what is left and what it takes, and end.")] = False,
    engine: Annotated[Literal[local, spark], typer.Option(help="What runs the cells.")] = "local",
    workers: WorkersOption = None,
    master: MasterOption = None,
    progress: ProgressOption = "auto",
) -> None:
    """Run a published study: its grid, each cell kept as a file, and tables beside what the paper says.

    Example: corpusveil evaluate study 1-diffractor --quick --output studies/1-diffractor
    """
    if list_all:
        for known in STUDIES:
            print(f"{known}: {find(known).paper}")
        return
    if name is None:
        raise UserError("Which study? 'corpusveil evaluate study --list' names them.")
    chosen = find(name)
    grid = read_grid(chosen, quick=quick, file=config)
    if print_config:
        print(written(grid))
        return
    if output is None:
        raise UserError("--output is missing: the folder for cells, tables and page.")
    sources = Sources(data, tuple(vectors or ()), tuple(corpus or ()), text, encoder, model, collection, queries, qrels)
    made = make_engine(engine, workers, master)
    watch = stage_watcher(progress)
    one = ready(chosen, grid, sources, output, made, watch)
    if plan:
        for line in plan_lines(one):
            print(line)
        return
    account, page = run_study(one, made, watch)
    for line in lines(account):
        print(line)
    print(f"\n{page}")
