#!/bin/sh
# The Python package, as somebody gets it: the wheel is built, put into empty environments of the oldest and the newest
# Python here, and tested from there.
#
#     [PROFILE=release] [CARGO_TARGET_DIR=...] sh scripts/python.sh [PYTEST ARGUMENT ...]
#
# Pythons are looked for as python3.10 (the oldest that the wheel is for) to python3.14, on the search path and
# among pyenv's. Those that are missing are said; in CI (CI=true) none at all is a failure. Libraries come by pip, and stay in the environments
# under the target folder. Some minutes; the first time it downloads some hundred MB.
set -eu
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
target=${CARGO_TARGET_DIR:-target}
build=$(mkdir -p "$target/python" && cd "$target/python" && pwd)

skip() {
    echo "python: skipped: $1"
    [ "${CI:-}" != true ] || exit 1
}
# A Python of that version that has venv, or nothing.
find_python() {
    for candidate in $(command -v "python$1" || true) "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if [ -x "$candidate" ] &&
            "$candidate" -c "import ensurepip, sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

found=""
for version in 3.10 3.11 3.12 3.13 3.14; do
    [ -n "$(find_python $version)" ] && found="$found $version"
done
if [ -z "$found" ]; then
    skip "no Python from 3.10 on with venv (python3-venv on Debian)"
    exit 0
fi
oldest=$(echo "$found" | awk '{ print $1 }')
newest=$(echo "$found" | awk '{ print $NF }')
[ "$oldest" = 3.10 ] || echo "python: the oldest here is $oldest; the wheel is for 3.10 and later"
[ "$newest" = 3.14 ] || echo "python: the newest here is $newest"

# The tools that build have an environment of their own.
if [ ! -x "$build/tools/bin/maturin" ]; then
    "$(find_python "$newest")" -m venv --clear "$build/tools"
    "$build/tools/bin/python" -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
fi
tree=$(cargo tree --quiet -p wattwise-python --edges normal --prefix none)
if echo "$tree" | grep -E '^(wattwise-hw|zbus|fuser) '; then
    echo "python: the module has a machine's wing in its tree" >&2
    exit 1
fi
PATH=$build/tools/bin:$PATH sh scripts/wheel.sh "$build/wheels" "$profile"
wheel=$(ls "$build"/wheels/wattwise-*-abi3-*.whl)

versions=$oldest
[ "$oldest" = "$newest" ] || versions="$oldest $newest"
for version in $versions; do
    # First with nothing but the wheel: the package needs no library.
    env=$build/empty-$version
    "$(find_python "$version")" -m venv --clear "$env"
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$wheel"
    (cd "$build" && "$env/bin/python" - <<'PY'
import shutil, subprocess, sys, wattwise
told = wattwise.compare("burst", "i7-4510u", ["schedutil", "performance"], replicas=8)
own = [wattwise.program(), "compare", "burst", "-m", "i7-4510u", "-p", "schedutil", "-p", "performance", "--replicas", "8", "--json"]
assert subprocess.run(own, capture_output=True, text=True, check=True).stdout == told.to_json() + "\n"
shutil.rmtree("empty.arrow", ignore_errors=True)
swept = wattwise.sweep("burst", "i7-4510u", "schedutil:rate_limit=1ms..20ms:n3", replicas=2, out="empty.arrow")
assert len(swept) == 6 and "<svg" in told._repr_html_()
others = {name.partition(".")[0] for name in sys.modules} & {"numpy", "pandas", "pyarrow", "polars", "dask"}
assert not others, others
print(f"python: {sys.version.split()[0]}: the wheel alone compares, sweeps and draws")
PY
    )
    # Then with everything that takes its tables.
    env=$build/full-$version
    wanted="pytest mypy pandas polars pyarrow distributed altair nbclient nbformat ipykernel"
    if [ "$(cat "$env/installed" 2>/dev/null)" != "$wanted" ]; then
        echo "python: $version: installing $wanted"
        "$(find_python "$version")" -m venv --clear "$env"
        # Several words.
        "$env/bin/python" -m pip install --quiet --disable-pip-version-check $wanted
        echo "$wanted" >"$env/installed"
    fi
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall "$wheel"
    echo "python: $version: tests"
    (cd crates/python && PYTHONDONTWRITEBYTECODE=1 "$env/bin/python" -m pytest -q -p no:cacheprovider tests "$@")
done
