#!/bin/sh
# Adds a dependency group of pyproject.toml to .venv, in the versions of uv.lock; nothing else in it changes.
set -eu
cd "$(dirname "$0")/.."
group=$1
set -- .tools/uv-*/bin/uv
if [ -x "$1" ]; then uv=$1; else uv=uv; fi
mkdir -p .tools
"$uv" export --quiet --frozen --offline --no-cache --only-group "$group" --output-file ".tools/$group.txt" >/dev/null
unset VIRTUAL_ENV || :
if ! "$uv" pip install --quiet --python .venv/bin/python --no-deps --require-hashes --requirement ".tools/$group.txt"; then
    python3 -m pip --python .venv/bin/python install --quiet --no-deps --require-hashes --requirement ".tools/$group.txt"
fi
