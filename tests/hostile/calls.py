"""Hostile calls, one line each: the words of a command, its status, and what is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SPACE, KEY, INPUT = "{space}", "{key}", "{input}"
ORDINARY = {
    "--space": SPACE,
    "--output": "{output}",
    "--mechanism": "ring-geometric",
    "--epsilon": "1",
    "--key": KEY,
    "--progress": "none",
}


@dataclass(frozen=True)
class Call:
    """One command line, and what its sentence names, divided by ``*``; ``{name}`` stands for a place of the test's."""

    words: tuple[str, ...]
    said: str
    status: int = 2


def privatize(said: str, *more: str, source: str | tuple[str, ...] = INPUT, status: int = 2, **instead: str) -> Call:
    """Return an ordinary call, but for what is given."""
    options = ORDINARY | {f"--{name.replace('_', '-')}": value for name, value in instead.items()}
    sources = (source,) if isinstance(source, str) else source
    return Call(("privatize", *sources, *(word for pair in options.items() for word in pair), *more), said, status)


def budgets() -> Iterator[Call]:
    for epsilon in ("nan", "-1", "0", "inf", "-0.0", "1e400", "1e-400", "1e-200"):
        yield privatize("epsilon", epsilon=epsilon)
    for epsilon in ("nan", "0", "1e-200"):
        yield privatize("epsilon", "--per", "document", epsilon=epsilon)
    for epsilon in ("abc", "", "1,5", "0x1"):
        yield privatize("--epsilon", epsilon=epsilon)
    yield privatize("--per", "--per", "word")
    words = privatize("--epsilon").words
    at = words.index("--epsilon")
    yield Call((*words[:at], *words[at + 2 :]), "--epsilon")


def mechanisms() -> Iterator[Call]:
    yield privatize("mechanism", mechanism="ring")
    yield privatize("mechanism", mechanism="")
    for name, value in (("gamma", "-1"), ("gamma", "0"), ("gamma", "x"), ("gamma", "1.5"), ("gamma", "NaN"),
                        ("gama", "3"), ("space", "3")):  # fmt: skip
        yield privatize(name, "--parameter", f"{name}={value}", mechanism="diffractor-exponential")
    for word in ("gamma", "=3", ""):
        yield privatize("NAME=VALUE", "--parameter", word, mechanism="diffractor-exponential")
    yield privatize("[unsuitable-data]", space="{listless}")


def options() -> Iterator[Call]:
    for name in ("unknown-words", "numbers", "layout", "engine", "on-bad-rows", "progress"):
        yield privatize(f"--{name}", f"--{name}", "sometimes")
    for policy in ("numbers", "contacts"):
        yield privatize(policy, f"--{policy}", "privatize")
    for name, values in (("workers", ("0", "-3", "two")), ("rows-per-task", ("0", "-8192", "many")),
                         ("format", ("xml", ""))):  # fmt: skip
        for value in values:
            yield privatize(f"--{name}", f"--{name}", value)
    yield privatize("[wrong-column]", "--format", "txt", "--keep", "id")
    for rows in ("1", "8191", "8193"):
        yield privatize("8192*[wrong-value]", "--rows-per-task", rows)
    yield privatize("--master*--engine*[conflicting-settings]", "--master", "spark://x:7077")
    yield privatize("--engine*[conflicting-settings]", "--", "--x=y")
    yield privatize("DaskRunner", "--engine", "beam", "--runner", "DaskRunner")
    yield privatize("--key*--test-key*[conflicting-settings]", "--test-key")
    for more, said in (
        (("--strategy", "s5"), "s1, s2, s3, s4"), (("--strategy", "s3"), "--collocations"),
        (("--strategy", "s3", "--tokenizer", "mst"), "--tokenizer: mst contradicts"),
        (("--strategy", "s1", "--per", "token"), "--per: token contradicts"),
        (("--tokenizer", "gst"), "--collocations"), (("--collocations", "{release}"), "takes no"),
        (("--allocation", "word-share"), "per document"),
        (("--tokenizer", "gst", "--collocations", "{corpus}"), "no collocation table"),
    ):  # fmt: skip
        yield privatize(said, *more)
    yield privatize("--nonsense", "--nonsense")
    yield privatize("--epsilonn", "--epsilonn", "1")
    yield privatize("ring-geometric?", mechanism="ring-geometrc")
    yield Call(("privatize",), "INPUT")
    yield Call(("privatize", INPUT), "--space")
    yield Call(("privatise", INPUT), "privatise")
    yield Call(("mechanisms", "nonsense"), "nonsense")
    yield Call(("key", "new", KEY), "[output-in-use]")
    yield Call(("key", "new", "{file}/x.key"), "{file}")
    yield Call(("space", "--vectors", "{missing}", "--output", "{output}"), "{missing}")
    yield Call(("space", "--output", "{output}"), "--vectors")
    yield Call(("space", "--vectors", INPUT, "--output", "{output}"), INPUT)
    yield Call(("space", "--vectors", "{vectors}", "--lists", "-1", "--output", "{output}"), "--lists")
    yield Call(("space", "--vectors", "{vectors}", "--lists", "4", "--output", "{output}"), "lists=4")
    yield Call(("space", "--vectors", "{vectors}", "--output", SPACE), SPACE)
    yield Call(("space", "--vectors", "{vectors}", "--output", "{file}"), "{file}")


def keys() -> Iterator[Call]:
    for name, said in (
        ("empty", " 0"), ("short", "31"), ("long", "33"), ("hex", "64"), ("phrase", "passphrase"),
        ("zeros", "passphrase"),
    ):  # fmt: skip
        yield privatize(f"{said}*[unusable-key]", key=f"{{keys}}/{name}.key")
    yield privatize("{missing}", key="{missing}")
    yield privatize("{input}", key="{input}/..")
    yield privatize("{output}/release.key*[overlapping-paths]", key="{output}/release.key")
    yield privatize("{release}*[output-in-use]", output="{release}", key="{keys}/other.key")


def places() -> Iterator[Call]:
    yield privatize("{missing}", source="{missing}")
    yield privatize("{missing}", source=(INPUT, "{missing}"))
    yield privatize("{missing}*[missing-file]", source="{missing}/*.jsonl")
    yield privatize("{empty}*[missing-file]", source="{empty}")
    yield privatize("{hidden}*[missing-file]", source="{hidden}")
    yield privatize("short.key*[wrong-format]", source="{keys}/short.key")
    yield privatize("x.jsonl*x.csv*[wrong-format]", source=(INPUT, "{table}"))
    yield privatize("nonsense", source="nonsense://bucket/x.jsonl")
    yield privatize("nonsense", output="nonsense://bucket/out")
    yield privatize("nonsense", space="nonsense://bucket/space")
    yield privatize("{missing}", space="{missing}")
    yield privatize("{file}", space="{file}")
    yield privatize("{empty}*[missing-artefact]", space="{empty}")
    yield privatize("{damaged}: this space is damaged", space="{damaged}")
    finding = ("--spans", "rules", "--treat", "phone=pseudonym", "--pseudonym-key")
    yield privatize("the ledger*[overlapping-paths]", "--ledger", "{output}/L")
    yield privatize("the key of pseudonyms*[overlapping-paths]", *finding, "{output}/p.key")
    yield privatize("the file of terms*[overlapping-paths]", "--spans", "{output}/terms.txt")
    yield privatize("{file}", output="{file}")
    yield privatize("{file}", output="{file}/out")
    yield privatize("{file}", records="{file}")
    yield privatize("{foreign}*[output-in-use]", output="{foreign}")
    yield privatize("{release}*[output-in-use]", output="{release}", epsilon="2")
    yield privatize("{release}*[output-in-use]", "--format", "csv", output="{release}")
    yield privatize("{release}.records*[output-in-use]", records="{release}.records")


def ledgers() -> Iterator[Call]:
    def counted(said: str, *more: str, ledger: str = "{output}.ledger") -> Call:
        return privatize(said, "--ledger", ledger, *more)

    yield privatize("--ledger", "--unit", "id")
    for cap in ("--cap", "--cap-token", "--cap-ldp"):
        yield counted("--unit", cap, "1")
        yield counted(cap, cap, "0", "--unit", "id")
    for unit in ("", "=", "=id", "id=", "content=id"):
        yield counted("unit", "--unit", unit)
    yield counted("unit", "--unit", "id", "--unit", "id=secret")
    yield counted("content", "--unit", "text")
    yield counted("nowhere", "--unit", "nowhere")
    for size in ("", "0", "lots", "5 apples", "-1GB"):
        yield counted("--ledger-memory", "--ledger-memory", size)
    yield counted("memory 1KB", "--ledger-memory", "1KB")
    yield counted("memory://ledger", ledger="memory://ledger")
    yield counted("{release}", ledger="{release}")
    yield counted("{file}", ledger="{file}")
    yield Call(("ledger", "show", "{missing}"), "{missing}")
    yield Call(("ledger", "verify", "{empty}"), "{empty}")


KINDS = (budgets, mechanisms, options, keys, places, ledgers)
