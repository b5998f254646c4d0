"""Is approximate search worthwhile? faiss' graphs and inverted lists against its exact scan, on CMP's noisy vectors.

A search that uses only the noisy vector and public vectors costs no privacy, whatever it finds. It costs agreement with
the exact nearest word, and noisy vectors are far outside the words, where there is little to prune. faiss comes from
PyPI, in a separate environment; one thread.
"""

import json
import subprocess
import sys

from benchmarks import inputs, peers
from benchmarks.report import Skipped, Table

EPSILONS = (5, 10, 20, 50, 100)
TOKENS = 2000
FASTER, AGREEING = 5.0, 0.99

SCRIPT = """
import json, sys, time
import faiss, numpy as np
faiss.omp_set_num_threads(1)
path, tokens, epsilons = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
with open(path) as file:
    n, d = map(int, file.readline().split())
    words = np.array([line.split(" ", 1)[1].split() for line in file], dtype=np.float32)
rng = np.random.default_rng(0)
flat, graph = faiss.IndexFlatL2(d), faiss.IndexHNSWFlat(d, 32)
graph.hnsw.efConstruction = 100
lists = faiss.index_factory(d, "IVF512,Flat")
lists.train(words)
for index in (flat, graph, lists):
    index.add(words)

def timed(index, points):
    began = time.perf_counter()
    found = index.search(points, 1)[1][:, 0]
    return found, tokens / (time.perf_counter() - began)

for epsilon in epsilons:
    noise = rng.standard_normal((tokens, d))
    noise *= (rng.gamma(d, 1 / epsilon, tokens) / np.linalg.norm(noise, axis=1))[:, None]
    points = (words[rng.integers(0, n, tokens)] + noise).astype(np.float32)
    exact, rate = timed(flat, points)
    print(json.dumps([epsilon, "exact scan", 1.0, 1.0, rate]))
    for name, index, setting, values in (
        ("HNSW, ef", graph, "hnsw.efSearch", (64, 256, 1024)), ("IVF512, lists", lists, "nprobe", (1, 4, 8, 32, 128)),
    ):
        for value in values:
            faiss.ParameterSpace().set_index_parameter(index, setting.split(".")[-1], value)
            found, own = timed(index, points)
            print(json.dumps([epsilon, f"{name} {value}", float((found == exact).mean()), own / rate, own]))
"""


def run() -> list[Table]:
    home = inputs.work() / "faiss"
    python = str(home / "bin" / "python")
    if not (home / "ready").exists():
        for command in (
            [sys.executable, "-m", "venv", str(home)],
            [python, "-m", "pip", "install", "--quiet", "faiss-cpu", "numpy"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Skipped(f"faiss could not be installed: {(done.stderr or done.stdout).strip()[-200:]}")
        (home / "ready").touch()
    table = Table(
        "approximate nearest words of CMP's noisy vectors, faiss, 33,787 × 300, one thread",
        ("ε", "search", "agreement", "times the exact scan", "tokens/s"),
    )
    path = str(peers.folder() / "emb.w2v.txt")
    command = [python, "-c", SCRIPT, path, str(TOKENS), json.dumps(EPSILONS)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in told.splitlines()]
    for epsilon, name, agreement, faster, rate in rows:
        table.rows.append((f"{epsilon}", name, f"{agreement:.4f}", f"{faster:.2f}", round(rate)))
    for epsilon in EPSILONS:
        good = [row[3] for row in rows if row[0] == epsilon and row[2] >= AGREEING and row[1] != "exact scan"]
        best = max(good, default=0.0)
        words = f"ε = {epsilon}: {best:.1f} times the exact scan at 99 % agreement, {FASTER:g} asked"
        table.target(words, met=best >= FASTER)
    return [table]
