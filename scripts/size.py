"""Print the lines of each room as Markdown: ``size.py [TREE]``; ``--path`` adds the files that a document passes."""

from __future__ import annotations

import ast
import io
import itertools
import os
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

COLUMNS = ("files", "total", "code", "imports", "docstrings", "comments", "blank", "functions")


def counted(text: str) -> Counter[str]:
    kinds = dict.fromkeys(range(1, len(text.splitlines()) + 1), "blank")
    comments, functions = set(), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            kinds.update(dict.fromkeys(range(token.start[0], token.end[0] + 1), "code"))
    kinds.update({line: "comments" for line in comments if kinds[line] == "blank"})
    for node in ast.walk(ast.parse(text)):
        functions += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_text = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if isinstance(node, ast.Import | ast.ImportFrom) or (is_text and isinstance(node, ast.Expr)):
            kind = "docstrings" if is_text else "imports"
            kinds.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), kind))
    return Counter(kinds.values()) + Counter(files=1, total=len(kinds), functions=functions)


def table(tree: Path) -> list[str]:
    rooms: dict[str, Counter[str]] = {}
    for path in sorted(tree.rglob("*.py")):
        place = path.relative_to(tree)
        if not {".venv", ".tools", "build"} & set(place.parts):
            depth = {"corpusveil": 2, "evaluate": 2 if "tests" in place.parts else 3}.get(place.parts[0], 1)
            room = "/".join(place.parts[:-1][:depth]) or place.name
            rooms.setdefault(room, Counter()).update(counted(path.read_text(encoding="utf-8")))
    rows = []
    for start, name in (("corpusveil", "package"), ("evaluate/corpusveil_evaluate", "evaluate"), ("", "all")):
        some = {room: lines for room, lines in sorted(rooms.items()) if room.startswith(start)}
        rows += [row for row in some.items() if row not in rows]
        rows.append((f"**{name}**", sum(some.values(), Counter[str]())))
    head = ["| room | " + " | ".join(COLUMNS) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    return head + [f"| {room} | " + " | ".join(f"{lines[name]:,}" for name in COLUMNS) + " |" for room, lines in rows]


def passed(tree: Path) -> list[str]:
    """Return how many files one document passes, and how often the file changes: of a whole call, and of its task.

    A first call imports everything and fills caches, so that a second one shows the path alone.
    """
    sys.path.insert(0, str(tree))
    from corpusveil.cli.main import run

    root = os.path.join(tree, "corpusveil", "")
    calls: list[tuple[str, str, bool]] = []
    tasks = 0

    def note(frame: object, event: str, _: object) -> None:
        nonlocal tasks
        code = frame.f_code  # type: ignore[attr-defined]
        if code.co_filename.startswith(root) and event in ("call", "return"):
            name = code.co_qualname
            tasks += (event == "call") - (event == "return") if name == "ShardJob.do" else 0
            if event == "call":
                calls.append((code.co_filename.removeprefix(root), name, tasks > 0))

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "in.txt").write_text("the river was cold\n", encoding="utf-8")
        for number in range(2):
            calls.clear()
            sys.setprofile(note)
            run(["privatize", f"{folder}/in.txt", "--output", f"{folder}/{number}", "--space", "demo", "--mechanism",
                 "ring-geometric", "--epsilon", "5", "--test-key", "--progress", "none"])  # fmt: skip
            sys.setprofile(None)
    lines = []
    for name, some in (("a call", calls), ("its task", [call for call in calls if call[2]])):
        changes = sum(before[0] != after[0] for before, after in itertools.pairwise(some))
        functions = len({call[:2] for call in some})
        lines.append(f"{name}: {len({at for at, *_ in some})} files, {functions} functions, {changes} changes of file")
    return [*lines, *dict.fromkeys(f"- {at}{' (task)' if task else ''}" for at, _, task in calls)]


if __name__ == "__main__":
    asked = [argument for argument in sys.argv[1:] if argument != "--path"]
    chosen = Path(asked[0] if asked else Path(__file__).parents[1]).resolve()
    sys.stdout.write("\n".join([*table(chosen), *(["", *passed(chosen)] if "--path" in sys.argv else []), ""]))
