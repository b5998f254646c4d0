"""``corpusveil evaluate study``: the published studies, cell by cell, compared with their papers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from corpusveil.cli.options import ProgressOption
from corpusveil.errors import SettingError
from corpusveil.storage.engine import ENGINES

if TYPE_CHECKING:
    Engine = str
else:
    Engine = Literal[*ENGINES.names()]


def study(
    name: Annotated[str | None, typer.Argument(help="The study to repeat. --list names all.", metavar="NAME")] = None,
    output: Annotated[
        str | None,
        typer.Option(help="The folder for results. A study that it already contains is resumed.", metavar="DIR"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run a small grid: 1 to 4 CPU minutes.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the studies, and do nothing else.")] = False,
    data: Annotated[
        str | None,
        typer.Option(help="Data sets: NAME.parquet with text, label, split. Default: bundled text.", metavar="DIR"),
    ] = None,
    vectors: Annotated[
        list[str] | None, typer.Option(help="Word vectors. Repeatable. Default: trained on the corpus.", metavar="FILE")
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(help="Public text to count and train on. Repeatable. Default: bundled text.", metavar="INPUT"),
    ] = None,
    text: Annotated[str, typer.Option(help="The column of --corpus that has the text.", metavar="COLUMN")] = "text",
    model: Annotated[
        str,
        typer.Option(help="The features of the classifier: tfidf or vectors.", metavar="NAME"),
    ] = "tfidf",
    encoder: Annotated[
        str | None, typer.Option(help="A sentence encoder: a local folder or package. Default: none.", metavar="PATH")
    ] = None,
    collection: Annotated[
        str | None, typer.Option(help="For pypantera: passages to search. Default: bundled text.", metavar="FILE")
    ] = None,
    queries: Annotated[
        str | None, typer.Option(help="For pypantera: queries. Default: parts of bundled text.", metavar="FILE")
    ] = None,
    qrels: Annotated[
        str | None,
        typer.Option(help="For pypantera: judgments of --queries, as TREC's. Default: none.", metavar="FILE"),
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="A TOML file that overrides keys of the grid. Default: none.", metavar="FILE")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="The engine that runs the cells; the output is the same for all engines.")
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(help="The number of processes. Default: 1 (local), all cores (Spark).", min=1, metavar="N"),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(help="The Spark master. Default: that of spark-submit, or this machine.", metavar="URL"),
    ] = None,
    _progress: ProgressOption = "auto",
) -> None:
    """Repeat a published study, and compare its figures with the paper's.

    Example: corpusveil evaluate study 1-diffractor --quick --output studies/1-diffractor
    """
    from corpusveil.pipelines.settings.sections import EngineSettings
    from corpusveil_evaluate.studies.report import lines
    from corpusveil_evaluate.studies.run_study import lease_of, prepare_study, run_study
    from corpusveil_evaluate.studies.study import STUDIES, find, read_grid
    from corpusveil_evaluate.studies.study_data import Sources

    if list_all:
        for known in STUDIES:
            print(f"{known}: {find(known).paper}")
        return
    if name is None:
        raise SettingError("The study is missing; 'corpusveil evaluate study --list' names the studies.")
    chosen = find(name)
    grid = read_grid(chosen, quick=quick, file=config)
    if output is None:
        raise SettingError("--output is missing; name a folder for cells, tables and page.")
    sources = Sources(data, tuple(vectors or ()), tuple(corpus or ()), text, encoder, model, collection, queries, qrels)
    made = EngineSettings(name=engine, workers=workers, master=master).engine()
    with lease_of(output, sources):
        one = prepare_study(chosen, grid, sources, output, made)
        account, page = run_study(one, made)
    for line in lines(account):
        print(line)
    print(f"\n{page}")
