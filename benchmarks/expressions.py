"""The same documents through every expression of a release: one digest, and the CPU seconds of each.

``CORPUSVEIL_BENCH_DOCUMENTS`` says how many (a million), each of 40 words. An expression is a process, ``python -m
benchmarks.expressions NAME FOLDER``; what it starts counts, servers and Java included. Engines are those that ``make
engines`` installs.
"""

import ctypes
import gzip
import hashlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import corpusveil as cv
from benchmarks import cluster, inputs
from benchmarks.report import Skipped, Table
from corpusveil.jobs.java import ensure_java

DOCUMENTS = int(os.environ.get("CORPUSVEIL_BENCH_DOCUMENTS", "1000000"))
WORDS, SHARDS = 40, 8
TOOLS = inputs.ROOT / ".tools"
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
CONFIGURATION = '[space]\npath = "{}"\n[mechanism]\nname = "ring-geometric"\n[budget]\nepsilon = 1.0\n'
PIPELINE = """
pipeline:
  type: chain
  transforms:
    - {{type: ReadFromParquet, config: {{path: "{folder}/in/*.parquet"}}}}
    - type: PrivatizeDocuments
      config: {{release: "{folder}/release.toml", text: text, id: id, keep: [id], key: {{path: "{key}"}}}}
    - {{type: WriteToParquet, config: {{path: "{folder}/out/part"}}}}
providers:
"""


def run() -> list[Table]:
    table = Table(
        f"{DOCUMENTS:,} documents of {WORDS} words as Parquet, through every expression, ε = 1",
        ("expression", "CPU s", "the command's = 1", "wall s", "digest of ids and texts"),
    )
    digests, first = set(), 0.0
    _adopt_orphans()
    with tempfile.TemporaryDirectory(dir=inputs.work()) as name:
        folder = Path(name)
        write(folder / "in")
        for expression in EXPRESSIONS:
            try:
                cpu, wall = measured(expression, folder)
            except Skipped as reason:
                table.notes.append(f"Left out, {expression}: {reason}")
                continue
            first = first or cpu
            digests.add(digest := digest_of(folder / "out"))
            table.rows.append((expression, cpu, cpu / first, wall, digest[:16]))
    table.target(f"{len(table.rows)} expressions, {len(digests)} digest", met=len(digests) == 1)
    table.notes.append("CPU seconds of all processes, start-up and reading and writing Parquet included; one run.")
    return [table]


def write(folder: Path) -> None:
    """Write the documents: pieces of the corpus."""
    folder.mkdir()

    def words() -> Iterator[str]:
        for shard in itertools.cycle(inputs.shards()):
            with gzip.open(shard, "rb") as file:
                for line in file:
                    yield from orjson.loads(line)["text"].split()

    stream, each = words(), -(-DOCUMENTS // SHARDS)
    for shard in range(SHARDS):
        ids = range(shard * each, min(DOCUMENTS, (shard + 1) * each))
        texts = [" ".join(itertools.islice(stream, WORDS)) for _ in ids]
        pq.write_table(pa.table([pa.array(ids), pa.array(texts)], schema=SCHEMA), folder / f"{shard}.parquet")


def digest_of(folder: Path) -> str:
    """Return the digest of all documents in the order of their ids, and delete them."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.open("rb").read(4) == b"PAR1"]
    table = ds.dataset(paths).to_table(columns=["id", "text"]).sort_by("id")
    assert table.num_rows == DOCUMENTS, f"{table.num_rows:,} documents"
    digest = hashlib.sha256()
    for batch in pc.binary_join_element_wise(
        table["id"].cast(pa.string()), table["text"].cast(pa.string()), " "
    ).chunks:
        digest.update("\n".join(batch.to_pylist()).encode() + b"\n")
    subprocess.run(["rm", "-r", str(folder)], check=True)
    return digest.hexdigest()


def _adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants, so that their CPU seconds are counted, too."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def measured(expression: str, folder: Path) -> tuple[float, float]:
    """Return the CPU and wall seconds of an expression and of all that it started. Raises Skipped if it fails."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.expressions", expression, str(folder)],
        cwd=inputs.ROOT, env=cluster.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    wall = time.perf_counter() - began
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    if done.returncode:
        raise Skipped(f"status {done.returncode}: {done.stderr.strip()[-400:]}")
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4]), wall


def release() -> cv.Release:
    return inputs.release(inputs.space())


def command(folder: Path) -> None:
    fixed = ["--space", inputs.space(), "--mechanism", "ring-geometric", "--epsilon", "1", "--key", inputs.key()]
    words = ["privatize", f"{folder}/in/*.parquet", "--id", "id", "--keep", "id", "--output", f"{folder}/out", *fixed]
    subprocess.run([sys.executable, "-m", "corpusveil", *words, "--workers", "1"], check=True)


def spark_frame(folder: Path) -> None:
    from pyspark.sql import SparkSession

    from corpusveil.transforms.spark import privatize_frame

    spark = SparkSession.builder.master("local[2]").getOrCreate()
    privatize_frame(spark.read.parquet(f"{folder}/in"), release(), id="id").write.parquet(f"{folder}/out")
    spark.stop()


def sql(folder: Path) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").getOrCreate()
    cv.register_sql(spark, release())
    spark.read.parquet(f"{folder}/in").createOrReplaceTempView("documents")
    spark.sql("SELECT id, privatize('text', id, text) AS text FROM documents").write.parquet(f"{folder}/out")
    spark.stop()


def beam(folder: Path, *options: str) -> None:
    import apache_beam
    from apache_beam.io import ReadFromParquet, WriteToParquet

    from corpusveil.transforms.beam import PrivatizeDocuments

    with apache_beam.Pipeline(argv=list(options)) as pipeline:
        documents = pipeline | ReadFromParquet(f"{folder}/in/*.parquet")
        private = documents | PrivatizeDocuments(release(), id="id")
        _ = private | WriteToParquet(f"{folder}/out/part", SCHEMA, file_name_suffix=".parquet")


def prism(folder: Path) -> None:
    beam(folder, "--runner=PrismRunner", f"--prism_location={TOOLS / 'prism'}")


def yaml(folder: Path) -> None:
    from apache_beam.yaml import main

    (folder / "release.toml").write_text(CONFIGURATION.format(inputs.space()))
    providers = (inputs.ROOT / "corpusveil" / "providers.yaml").read_text()
    (folder / "pipeline.yaml").write_text(PIPELINE.format(folder=folder, key=inputs.key()) + providers)
    main.run([f"--yaml_pipeline_file={folder}/pipeline.yaml", "--runner=PrismRunner",
              f"--prism_location={TOOLS / 'prism'}"])  # fmt: skip


def flink(folder: Path) -> None:
    from tests.engines.processes import answers, free_port, wait_until
    from tests.engines.test_flink import job_server

    ensure_java()
    port = free_port()
    server = job_server(folder, port, "[local]", heap="6g")
    try:
        wait_until(lambda: answers(port) or server.poll() is not None, every=0.1)
        beam(folder, "--runner=PortableRunner", f"--job_endpoint=127.0.0.1:{port}", "--environment_type=LOOPBACK")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


EXPRESSIONS: dict[str, Callable[[Path], None]] = {
    "command, one process": command,
    "Spark frame, local[2]": spark_frame,
    "SQL, local[2]": sql,
    "Beam transform on Prism": prism,
    "Beam YAML on Prism": yaml,
    "Beam transform on Flink": flink,
}

if __name__ == "__main__":
    EXPRESSIONS[sys.argv[1]](Path(sys.argv[2]))
