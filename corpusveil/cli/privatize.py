"""``corpusveil privatize``: a corpus to a release."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corpusveil.choices import ALLOCATIONS, CsvFormulas, Duplicates, Hyphens, OnBadRows, Policy
from corpusveil.cli.options import EngineOption, LogOption, OutputOption, ProgressOption, SpaceOption
from corpusveil.cli.parameters import mechanism_parameters
from corpusveil.errors import UserError
from corpusveil.storage.formats import FORMATS
from corpusveil.transforms.profiles import PROFILES, Profile
from corpusveil.transforms.profiles import find as find_profile

if TYPE_CHECKING:
    from corpusveil.sampling.keys import Key
    from corpusveil.storage.rows import Columns
    from corpusveil.transforms.release import Release
    from corpusveil.transforms.spending import Spending

NEARLY_ALL = 0.9
EXAMPLE_LENGTHS = (10, 100, 1000)


def privatize(
    context: typer.Context,
    inputs: Annotated[
        list[str], typer.Argument(help="Files, folders or quoted globs, at any fsspec URL.", metavar="INPUT...")
    ],
    space: SpaceOption,
    output: OutputOption,
    mechanism: Annotated[str, typer.Option(help="A name from 'corpusveil mechanisms'.")],
    epsilon: Annotated[float, typer.Option(help="The budget, above 0.")],
    parameter: Annotated[
        list[str] | None, typer.Option(help="A parameter of the mechanism, such as gamma=18.", metavar="NAME=VALUE")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help=f"A study's settings: {', '.join(PROFILES)}.", metavar="NAME")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="A strategy of the collocation study: s1, s2, s3, s4.", metavar="NAME")
    ] = None,
    average_words: Annotated[
        float | None, typer.Option(help="Words of an average text, by which epsilon is multiplied; public.")
    ] = None,
    per: Annotated[Literal["token", "document"], typer.Option(help="What the budget is for.")] = "token",
    allocation: Annotated[
        str,
        typer.Option(
            help=f"How a document's budget is shared: {', '.join(ALLOCATIONS)}; or dataset: epsilon times "
            "--average-words, uniform.",
            metavar="NAME",
        ),
    ] = "uniform",
    weights: Annotated[
        str | None,
        typer.Option(help="With --allocation position: 10:3,1 is ten words of weight 3, all others of 1."),
    ] = None,
    field_weights: Annotated[
        str | None,
        typer.Option(
            help="With --per document, where a document has several text columns, each a release of its own: "
            "title:1,body:3 gives --text body three quarters of epsilon.",
        ),
    ] = None,
    tokenizer: Annotated[
        Literal["word", "gst", "mst", "optimal"], typer.Option(help="Words, or how they are joined to collocations.")
    ] = "word",
    collocations: Annotated[
        str | None, typer.Option(help="For a --tokenizer other than word: made by 'corpusveil score'.", metavar="URL")
    ] = None,
    text: Annotated[str, typer.Option(help="The column with the text.", metavar="COLUMN")] = "text",
    id: Annotated[str | None, typer.Option(help="A column that identifies a document.", metavar="COLUMN")] = None,
    root: Annotated[
        str | None,
        typer.Option(
            help="Without --id: the folder that paths in documents' identities begin at; default: the common one.",
            metavar="URL",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Another column to write, in the clear.", metavar="COLUMN")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="The key file. None given: one is made and named.", metavar="PATH")
    ] = None,
    key_environment: Annotated[
        str | None, typer.Option(help="The environment variable that holds the key.", metavar="NAME")
    ] = None,
    test_key: Annotated[bool, typer.Option("--test-key", help="Use the published key: NOT PRIVATE.")] = False,
    records: Annotated[
        str | None, typer.Option(help="Private records; default <output>.records.", metavar="URL")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Where is written what documents have spent; private.", metavar="URL")
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            help="The corpus' name: in the ledger, and without --id in the identity of each document; default: its "
            "folder. Needed with --id and --ledger.",
            metavar="NAME",
        ),
    ] = None,
    only_release: Annotated[
        str | None,
        typer.Option(help="Stop unless this would be the release of that name, as a ledger has it.", metavar="NAME"),
    ] = None,
    cap: Annotated[
        float | None,
        typer.Option(
            help="The most that a document may spend over tokens and releases in one metric; another mechanism, "
            "parameter or space is another metric, so set --cap-ldp beside it."
        ),
    ] = None,
    cap_token: Annotated[
        float | None, typer.Option(help="The same for a single token; set --cap-ldp beside it, too.")
    ] = None,
    cap_ldp: Annotated[
        float | None, typer.Option(help="The same in nats of plain LDP, over all metrics and tokens.")
    ] = None,
    engine: EngineOption = "local",
    workers: Annotated[int | None, typer.Option(help="Processes; default 1 (local), all cores (Spark).", min=1)] = None,
    master: Annotated[str | None, typer.Option(help="The Spark master.", metavar="URL")] = None,
    runner: Annotated[str, typer.Option(help="The Beam runner; its options go behind '--'.")] = "FnApiRunner",
    rows_per_task: Annotated[
        int | None, typer.Option(help="Split larger shards into tasks of so many rows, a multiple of 8192.", min=1)
    ] = None,
    format: Annotated[
        str, typer.Option(help=f"The form of the output: {', '.join(FORMATS)}.", metavar="FORM")
    ] = "same",
    csv_formulas: Annotated[
        CsvFormulas,
        typer.Option(
            help="CSV cells that a spreadsheet would run as a formula (= + - @, tab, return first): as they are, or "
            "behind an apostrophe.",
        ),
    ] = "keep",
    on_bad_rows: Annotated[
        OnBadRows, typer.Option(help="Rows that can't be read: stop, or set them aside in the private records.")
    ] = "fail",
    duplicates: Annotated[
        Duplicates,
        typer.Option(
            help="Equal texts under different identities: noise of their own, the same, or leave out all but one."
        ),
    ] = "independent",
    unknown_words: Annotated[Policy, typer.Option(help="Words outside the vocabulary.")] = "resample",
    stop_words: Annotated[Policy, typer.Option(help="Function words.")] = "privatize",
    numbers: Annotated[Policy, typer.Option(help="Numbers.")] = "resample",
    contacts: Annotated[Policy, typer.Option(help="URLs, e-mail addresses, handles.")] = "mask",
    punctuation: Annotated[Policy, typer.Option(help="Punctuation.")] = "keep",
    other: Annotated[Policy, typer.Option(help="Symbols, emoji, control characters.")] = "drop",
    layout: Annotated[Literal["normalize", "keep"], typer.Option(help="White space.")] = "normalize",
    case: Annotated[Literal["lower", "restore"], typer.Option(help="Capitals of replacements.")] = "lower",
    hyphens: Annotated[
        Hyphens, typer.Option(help="A hyphen between letters parts words or joins them, as the space's text was read.")
    ] = "split",
    accept_no_guarantee: Annotated[
        bool, typer.Option("--accept-no-guarantee", help="Release by a mechanism that has no guarantee.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what it would take and spend, from a sample, and do nothing.")
    ] = False,
    plan_duplicates: Annotated[
        bool, typer.Option("--plan-duplicates", help="The same, and count equal documents, which reads everything.")
    ] = False,
    progress: ProgressOption = "auto",
    log: LogOption = None,
) -> None:
    """Privatize a corpus: shards in, private shards and a manifest out.

    Example: corpusveil privatize 'c4/c4-train.*.json.gz' --space spaces/glove --mechanism ring-geometric --epsilon 1
    --key release.key --output private/2026-11
    """
    from corpusveil.budget import Budget
    from corpusveil.budget.budget import dataset_budget, field_budget, parse_weights
    from corpusveil.cli.engines import make_engine
    from corpusveil.cli.progress import watcher
    from corpusveil.collocations.table import load_collocations
    from corpusveil.mechanisms import make
    from corpusveil.sampling.keys import Key
    from corpusveil.spaces import load_space
    from corpusveil.storage import events
    from corpusveil.storage.rows import Columns
    from corpusveil.text.policy import TextPolicy
    from corpusveil.transforms import strategies
    from corpusveil.transforms.corpus import privatize_corpus
    from corpusveil.transforms.release import Release
    from corpusveil.transforms.spending import Caps, Spending

    options: dict[str, Any] = {
        "per": per, "unknown_words": unknown_words, "stop_words": stop_words, "numbers": numbers, "contacts": contacts,
        "punctuation": punctuation, "other": other, "layout": layout, "case": case, "allocation": allocation,
        "tokenizer": tokenizer, "hyphens": hyphens,
    }  # fmt: skip
    if (place := log or events.given()) is not None:
        events.open_log(place)
    parameters = mechanism_parameters(parameter or [])
    if profile is not None:
        options, parameters = _follow(context, find_profile(profile), mechanism, options, parameters)
    if strategy is not None:
        options, epsilon = strategies.follow(strategy, options, _explicit(context, options), epsilon, average_words)
    elif allocation == "dataset":
        options["allocation"], epsilon = "uniform", dataset_budget(epsilon, average_words)
    elif average_words is not None:
        raise UserError("--average-words is for --strategy and --allocation dataset; add one or leave it out.")
    if field_weights is not None:
        if options["per"] != "document":
            raise UserError("--field-weights share a document's budget among its columns; add --per document.")
        epsilon = field_budget(epsilon, field_weights, text)
    weighted = () if weights is None else parse_weights(weights)
    budget = Budget(epsilon, options.pop("per"), options.pop("allocation"), weighted)
    policy = TextPolicy(**options)
    columns = Columns(text, id, tuple(keep or ()), csv_formulas)
    chosen = make(mechanism, load_space(space), **parameters)
    if sum([test_key, key is not None, key_environment is not None]) > 1:
        raise UserError("--key, --key-environment and --test-key exclude each other; leave all but one out.")
    passed = tuple(context.obj["passed"])
    if passed and engine != "beam":
        raise UserError("Options behind '--' are for the Beam runner; add --engine beam or leave them out.")
    table = None if collocations is None else load_collocations(collocations)
    caps = Caps(cap, cap_token, cap_ldp)
    if ledger is None and caps != Caps():
        raise UserError("--cap, --cap-token and --cap-ldp are for --ledger; add that or leave them out.")
    spending = None if ledger is None else Spending(ledger, caps)
    release = Release(
        chosen, budget, policy, Key.generate(), table, duplicates, accept_no_guarantee=accept_no_guarantee
    )  # under a key that is thrown away: what is refused makes no key file
    if plan or plan_duplicates:
        release = dataclasses.replace(release, key=_key(key, key_environment, output, test=test_key, make=False))
        _plan(
            release, inputs, columns, root, corpus, format, on_bad_rows, spending, workers or 1, copies=plan_duplicates
        )
        return
    release = dataclasses.replace(release, key=_key(key, key_environment, output, test=test_key))
    if only_release is not None and release.name != only_release:
        raise UserError(
            f"--only-release {only_release}: this would be release {release.name}; the configuration, the space, the "
            "key or the version of corpusveil is another one."
        )
    announce(release)
    if caps.ldp is None and caps != Caps():
        said = "--cap and --cap-token add up within one metric; --cap-ldp, which is not set, holds over all of them"
        print(f"warning: {said}.", file=sys.stderr)
    if engine == "spark":
        print("starting Spark", file=sys.stderr)
    outcome = privatize_corpus(
        release, inputs, output, make_engine(engine, workers, master, runner, passed),
        columns=columns, root=root, corpus=corpus, records=records, rows_per_task=rows_per_task, format=format,
        on_bad_rows=on_bad_rows, debug=context.obj["debug"], spending=spending,
        watch=watcher(progress),
    )  # fmt: skip
    if outcome.content_sha256 is None:
        print(f"{output}: {outcome.shards} shards are handed over; the job writes the manifest when all are done")
        print(f"private records (do not publish): {records or output.rstrip('/') + '.records'}")
        return
    print(
        f"{output}: {outcome.shards} shards, {outcome.counts.documents:,} documents, "
        f"{outcome.counts.tokens_written:,} tokens, {outcome.seconds:.1f} s"
    )
    if outcome.counts.quarantined:
        told = f"{outcome.counts.quarantined:,} rows could not be read and were set aside in the private records"
        print(f"warning: {told}.", file=sys.stderr)
    print(f"content sha256 {outcome.content_sha256}")
    print(f"private records (do not publish): {records or output.rstrip('/') + '.records'}")


def _follow(
    context: typer.Context, profile: Profile, mechanism: str, options: dict[str, Any], parameters: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options and parameters as a profile has them, and print what it leaves in the clear."""
    from corpusveil.text.policy import TextPolicy

    options, parameters = profile.settle(mechanism, options, _explicit(context, options), parameters)
    policy = TextPolicy(**{name: value for name, value in options.items() if name not in ("per", "allocation")})
    for line in profile.lines(policy):
        print(line, file=sys.stderr)
    return options, parameters


def _explicit(context: typer.Context, options: dict[str, Any]) -> list[str]:
    """Return the options that stand on the command line."""
    return [name for name in options if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"]


def _plan(
    release: Release, inputs: list[str], columns: Columns, root: str | None, corpus: str | None, format: str,
    on_bad_rows: OnBadRows, spending: Spending | None, workers: int, *, copies: bool,
) -> None:  # fmt: skip
    """Print what a release would take."""
    from corpusveil.storage.inputs import find_shards
    from corpusveil.transforms.planning import count_duplicates, forecast

    found = forecast(
        release, inputs, columns=columns, root=root, corpus=corpus, format=format, on_bad_rows=on_bad_rows,
        spending=spending,
    )  # fmt: skip
    for line in found.lines(workers):
        print(line)
    if copies:
        known = count_duplicates(find_shards(inputs), columns)
        print(
            f"{known.documents:,} documents, {known.copies:,} of them copies of an earlier one, at most {known.most:,} "
            f"alike: with --duplicates independent such a document spends {known.most:,} times as much"
        )


def _key(path: str | None, environment: str | None, output: str, *, test: bool, make: bool = True) -> Key:
    from corpusveil.sampling.keys import Key

    if test:
        return Key.for_tests()
    return find_key(path, output, make=make) if environment is None else Key.from_environment(environment)


def find_key(path: str | None, output: str, *, make: bool = True) -> Key:
    """Load the named key, or find or make one for this output in the user's key folder, and name it.

    A new one is kept there where it is to be made, else it is lost.
    """
    from corpusveil.sampling.keys import Key
    from corpusveil.storage import files

    if path is not None:
        if files.is_local(output) and Path(path).resolve().is_relative_to(Path(output).resolve()):
            raise UserError(f"{path}: the key lies in the output folder, which is for the public; move it away.")
        return Key.load(path)
    absolute = files.absolute(output)
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    mark = hashlib.sha256(absolute.encode()).hexdigest()[:12]
    target = base / "corpusveil" / "keys" / f"{mark}.key"
    if not target.exists():
        new = Key.generate()
        if not make:
            return new
        files.create_bytes(str(target), new.secret, private=True)  # of several starts at once, one makes the key of all
    print(f"No --key: this output's own key is {target}; the same output finds it again.", file=sys.stderr)
    return Key.load(target)


def announce(release: Release) -> None:
    """Print what will come back unchanged, and what the release promises."""
    from corpusveil.transforms.statement import NOT_PRIVATE

    if release.key.test:
        print(NOT_PRIVATE, file=sys.stderr)
    mechanism, budget = release.mechanism, release.budget
    if budget.per == "token":
        share = mechanism.retention(budget.epsilon)
        print(f"Expected share of known words that come back unchanged: {share:.1%}")
    else:
        import numpy as np

        lengths = np.array(EXAMPLE_LENGTHS)
        shares = budget.shares(budget.weight_before(lengths) if budget.weights else lengths)
        kept = [mechanism.retention(float(value)) for value in shares]
        share = max(kept)
        examples = ", ".join(f"{k:.1%} of {n}" for k, n in zip(kept, EXAMPLE_LENGTHS, strict=True))
        print(f"Expected share of known words that come back unchanged, by the words of a document: {examples}")
    if share > NEARLY_ALL:
        print(f"warning: at epsilon {budget.epsilon:g} nearly every known word stays as it is.", file=sys.stderr)
    guarantee = release.guarantee()
    for line in guarantee.notes:
        print(f"- {line}")
    print(f"Disclosed: {'; '.join(guarantee.disclosed)}.")
