"""Nothing that comes from a file is run: no pickle, eval or loader that unpickles, but what is listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import corpusveil

PACKAGE = Path(corpusveil.__file__).parent
FOLDERS = {"": PACKAGE, "evaluate/": PACKAGE.parent / "evaluate" / "corpusveil_evaluate"}

MODULES = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "yaml", "torch", "runpy", "code", "codeop"}
"""Modules that make objects or code out of bytes."""
NAMES = {"eval", "exec", "compile", "__import__"}
ATTRIBUTES = {"load_module", "exec_module", "unsafe_load", "full_load", "extractall", "unpack_archive", "read_pickle"}
LOADERS = {"load", "loads", "load_word2vec_format", "load_fasttext_format", "load_facebook_model"}
NOT_PICKLE = {"json", "orjson", "tomllib", "np", "files", "Key", "KeyedVectors"}
"""What ``load`` and ``loads`` may be called on; NumPy's only with ``allow_pickle=False``."""

ALLOWED = {
    ("wide.py", "load of builder"): "an instruction of compiled loops that reads memory",
    ("sampling/blake2b.py", "load of builder"): "likewise",
    ("spaces/installed.py", "attribute extractall"): "the archive of an installed package, trusted as its code is",
    ("evaluate/studies/retrieval/bm25.py", "load of bm25s.BM25"): "arrays by NumPy without pickle, words as JSON",
    ("evaluate/studies/search_collections.py", "load of Bm25"): "that index",
    ("jobs/local.py", "import of pickle"): "the function of a task, from the process that started the worker",
    ("registry.py", "load of point"): "what was asked for by name, of an installed package, by its entry point",
    ("sampling/keys.py", "load of cls"): "a key's own reader, of bytes or hexadecimal digits",
    ("jobs/submit.py", "import of runpy"): "runs this package's own command, for spark-submit",
}
"""What is found and right, and why."""


def uses(tree: ast.AST) -> Iterator[str]:
    """Yield the calls of a module that could run the content of a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"import of {one.name}" for one in node.names if one.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] in MODULES:
            yield f"import of {node.module}"
        elif isinstance(node, ast.Name) and node.id in NAMES:
            yield f"name {node.id}"
        elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            yield f"attribute {node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOADERS:
            on = node.func.value
            owner = on.id if isinstance(on, ast.Name) else ast.unparse(on)
            if owner == "np":
                if not any(one.arg == "allow_pickle" for one in node.keywords):
                    yield "np.load without allow_pickle=False"
            elif owner not in NOT_PICKLE - {"KeyedVectors"}:
                yield f"{node.func.attr} of {owner}"
        elif isinstance(node, ast.keyword) and node.arg in {"allow_pickle", "trust_remote_code"}:
            yield from (
                [] if isinstance(node.value, ast.Constant) and node.value.value is False else [f"keyword {node.arg}"]
            )


def test_the_package_runs_nothing_that_it_reads() -> None:
    found = {
        (f"{room}{path.relative_to(folder).as_posix()}", use)
        for room, folder in FOLDERS.items()
        for path in folder.rglob("*.py")
        for use in uses(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set(ALLOWED)


def test_what_would_run_it_is_found_and_what_is_right_is_not() -> None:
    """The test itself."""
    for code in (
        "import pickle",
        "from pickle import loads",
        "import torch.serialization",
        "eval(text)",
        "run = exec",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "gensim.models.KeyedVectors.load_word2vec_format(path)",
        "archive.extractall(folder)",
        "self.unpickler.load()",
        "load_dataset(name, trust_remote_code=True)",
    ):
        assert list(uses(ast.parse(code))), code
    for code in ("np.load(path, allow_pickle=False)", "json.loads(text)", "tomllib.load(file)"):
        assert not list(uses(ast.parse(code))), code
