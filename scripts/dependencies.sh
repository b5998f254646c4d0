#!/bin/sh
# Asks PyPI, then OSV, whether a vulnerability is known of any package in uv.lock. Exit status 0: of all, and none is
# known; 1: some are, or not every package could be asked about, which is said. A mirror that knows no vulnerabilities
# calls everything sound, so a release that has some is asked about first.
set -eu
cd "$(dirname "$0")/.."
set -- .tools/uv-*/bin/uv
if [ -x "$1" ]; then uv=$1; else uv=uv; fi
locked=.tools/locked.txt control=.tools/control.txt said=.tools/audit.txt
"$uv" export --quiet --frozen --offline --no-cache --all-extras --all-groups --no-emit-workspace --output-file "$locked" \
    >/dev/null
echo 'jinja2==2.10' >"$control"

ask() { # of what, whom
    .venv/bin/pip-audit --strict --requirement "$1" --no-deps --disable-pip --progress-spinner off --timeout 20 \
        --vulnerability-service "$2" >"$said" 2>&1
}

why=
for service in pypi osv; do
    if ask "$control" "$service" || ! grep -q '^Found ' "$said"; then
        why="$why
$service: $(tail -n 1 "$said" | cut -c 1-200)"
        continue
    fi
    if ask "$locked" "$service"; then
        echo "dependencies: no vulnerability of the $(grep -c == "$locked") locked packages is known to $service"
        exit 0
    fi
    if grep -q '^Found ' "$said"; then
        cat "$said"
        exit 1
    fi
    why="$why
$service: $(tail -n 1 "$said" | cut -c 1-200)"
done
echo "dependencies: NOT CHECKED: neither PyPI nor OSV could be asked from here; run this where they can.$why" >&2
exit 1
