#!/bin/sh
# The Python wheel: the module for every Python since 3.10, and the program. Prints where it is.
#   sh scripts/wheel.sh [FOLDER] [PROFILE]     FOLDER: where it goes (target/wheels), PROFILE: dist
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
out=${1:-$target/wheels}
profile=${2:-dist}
command -v maturin >/dev/null || {
    echo "wheel: no maturin; install it with 'pip install maturin'" >&2
    exit 3
}
built=$target/$profile
if [ "$profile" = dev ]; then
    built=$target/debug
    # Several words: under make the program is there as the tests have it.
    cargo build --quiet ${TEST_SET:--p wattwise --features full} --bin wattwise
else
    cargo build --profile "$profile" -p wattwise --features full --quiet
fi
scripts=crates/python/wattwise.data/scripts
mkdir -p "$scripts" "$out"
cp "$built/wattwise" "$scripts/wattwise"
# Names of functions are a third of it.
! command -v strip >/dev/null || strip "$scripts/wattwise"
rm -f "$out"/wattwise-*.whl
maturin build --quiet --profile "$profile" --manifest-path crates/python/Cargo.toml --out "$out"
ls "$out"/wattwise-*.whl
