#!/bin/sh
# Makes .venv, complete and in the versions of uv.lock, out of nothing but a Python and pip: no root, no ensurepip; and
# compiles the loops that the first use would wait for.
# Does nothing when that is done already; may be stopped anywhere and started again. PYTHON names the interpreter.
# With the argument "demo" it installs what a user of the package has, in half of the time; without, what tests need too.
set -eu
cd "$(dirname "$0")/.."

UV_VERSION=0.13.8
OLDEST_JAVA=17
WANTED="Python 3.11, 3.12 or 3.13"
SUITS='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'
PART=${1:-all}
STAMP=.venv/.set-up-$PART

say() { printf 'set-up: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
suits() { "$1" -c "$SUITS" 2>/dev/null; }
base_of() { "$1" -c 'import sys; print(sys.base_prefix, sys.version_info[:3])' 2>/dev/null; }

# What a finished set-up depends on. Another Java, or none, may call for another runtime.
state() {
    { cksum pyproject.toml evaluate/pyproject.toml spaces/en/pyproject.toml spans/pyproject.toml uv.lock scripts/setup.sh; echo "${PYTHON-}"; echo "${JAVA_HOME-}"; command -v java || :; } | cksum
    pwd
}

choose_python() {
    if [ -n "${PYTHON-}" ]; then set -- "$PYTHON"; else set -- python3 python3.12 python3.11 python3.13 python; fi
    seen=
    for candidate; do
        version=$("$candidate" --version 2>/dev/null) || continue
        if suits "$candidate"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
        seen="$seen${seen:+, }$candidate is $version"
    done
    fail "needs $WANTED (${seen:-no Python found}); name one with: make PYTHON=/path/to/python3.12 ..."
}

find_pip() {
    for candidate in "$python" python3 python; do
        if "$candidate" -m pip --version >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

run_pip() {
    PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
        "$pip_python" -m pip "$@"
}

find_uv() {
    uv=.tools/uv-$UV_VERSION/bin/uv
    if [ -x "$uv" ]; then return; fi
    if [ "$(uv --version 2>/dev/null | cut -d ' ' -f 2)" = "$UV_VERSION" ]; then uv=uv; return; fi
    [ -n "$pip_python" ] || fail "needs pip: $python has none (on Debian and Ubuntu: apt install python3-pip)."
    say "fetching uv $UV_VERSION"
    rm -rf .tools/uv.part
    run_pip install --quiet --target .tools/uv.part "uv==$UV_VERSION"
    mv .tools/uv.part ".tools/uv-$UV_VERSION"
}

discard_venv() {
    rm -rf .tools/discarded
    mv .venv .tools/discarded # so that a stop in the middle leaves no half of it in place
    rm -rf .tools/discarded
}

java_is_new_enough() {
    for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" java; do
        version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
        if [ "${version:-0}" -ge "$OLDEST_JAVA" ]; then return 0; fi
    done
    return 1
}

install_with_uv() {
    # shellcheck disable=SC2086 # $extras is a list
    "$uv" sync --frozen --inexact --compile-bytecode $extras
}

# pip knows an index, a mirror or a certificate from its configuration, which uv does not read.
install_with_pip() {
    # shellcheck disable=SC2086
    "$uv" export --quiet --frozen --offline --no-cache --no-emit-workspace $extras --output-file .tools/requirements.txt \
        >/dev/null
    set -- --editable . --editable ./spaces/en --editable ./spans
    [ "$PART" = demo ] || set -- "$@" --editable ./evaluate
    run_pip --python .venv/bin/python install --quiet --no-deps --require-hashes --requirement .tools/requirements.txt &&
        run_pip --python .venv/bin/python install --quiet --no-deps "$@"
}

mkdir -p .tools
if command -v flock >/dev/null 2>&1; then # two makes at once: the second waits for the first
    exec 9>.tools/lock
    flock 9
fi
now=$(state)
if [ -x .venv/bin/python ] && [ -x .venv/bin/corpusveil ]; then
    for stamp in "$STAMP" .venv/.set-up-all; do
        if [ "$(cat "$stamp" 2>/dev/null)" = "$now" ]; then exit 0; fi
    done
fi
before=$(cat .venv/.set-up-* 2>/dev/null || :)

unset VIRTUAL_ENV PYTHONHOME PYTHONPATH UV_PYTHON UV_PROJECT UV_WORKING_DIR || :
export UV_PROJECT_ENVIRONMENT=.venv UV_PYTHON_DOWNLOADS=never

# A tree that was moved or copied: the environment's scripts still name the old place.
if [ -e .venv ] && [ -n "$before" ] && [ "${before##*
}" != "$PWD" ]; then discard_venv; fi
rm -f .venv/.set-up-*

if suits .venv/bin/python && [ -z "${PYTHON-}" ]; then
    python=$PWD/.venv/bin/python
else
    python=$(choose_python)
fi
if { [ -e .venv ] || [ -L .venv ]; } && [ "$(base_of .venv/bin/python)" != "$(base_of "$python")" ]; then discard_venv; fi
pip_python=$(find_pip)
find_uv

extras="--extra en --extra spans --extra spark --extra beam"
if [ "$PART" = demo ]; then extras="--no-dev $extras"; else extras="$extras --extra connect --extra dataflow --extra s3"; fi
java_is_new_enough || extras="$extras --extra jre"

say "making .venv with $("$python" --version) ($extras); the first time takes a few minutes"
[ -e .venv ] || "$uv" venv --quiet --no-cache --python "$python" --prompt corpusveil .venv
if ! install_with_uv; then
    [ -n "$pip_python" ] || fail "uv could not install the packages, and there is no pip to try instead."
    say "uv could not install the packages by itself; fetching the same ones with pip, as pip is configured"
    install_with_pip || fail "pip could not install the packages either; what it said stands above."
fi
[ -x .venv/bin/corpusveil ] || fail ".venv is complete, but without the corpusveil command; remove .venv and start again."
nice -n 5 .venv/bin/python scripts/compile_loops.py >/dev/null || say "the loops were not compiled; the first use compiles its own."
printf '%s\n' "$now" >"$STAMP"
