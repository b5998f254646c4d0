#!/bin/sh
# Adds to .venv, which set-up has made, what make stores needs, in the versions of uv.lock, and an Azurite by npm.
# Does nothing when that is done already; may be stopped anywhere and started again.
set -eu
cd "$(dirname "$0")/.."

AZURITE_VERSION=3.35.0
STAMP=.tools/stores

say() { printf 'stores: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

now=$(cksum uv.lock scripts/stores.sh; cksum .venv/.set-up-all)
if [ "$(cat "$STAMP" 2>/dev/null || :)" = "$now" ]; then exit 0; fi
rm -f "$STAMP"

uv=$(ls .tools/uv-*/bin/uv 2>/dev/null | tail -n 1)
[ -n "$uv" ] || uv=$(command -v uv) || fail "needs uv, which make setup fetches into .tools."
command -v npm >/dev/null || fail "needs npm and node of version 18 or newer for Azurite, Microsoft's emulator."

unset VIRTUAL_ENV UV_PROJECT UV_WORKING_DIR || :
export UV_PROJECT_ENVIRONMENT=.venv
if ! "$uv" sync --quiet --frozen --inexact --only-group stores; then
    say "uv could not install the packages by itself; fetching the same ones with pip, as pip is configured"
    "$uv" export --quiet --frozen --offline --no-cache --only-group stores --output-file .tools/stores.txt >/dev/null
    python3 -m pip --python .venv/bin/python install --quiet --no-deps --require-hashes --requirement .tools/stores.txt ||
        fail "pip could not install the packages either; what it said stands above."
fi
npm install --silent --no-audit --no-fund --prefix .tools/azurite "azurite@$AZURITE_VERSION"
printf '%s\n' "$now" >"$STAMP"
