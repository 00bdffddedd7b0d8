#!/bin/sh
# Damaged files through whole commands: scripts/mutated.sh INPUTS [SEED [KIND,KIND...]]. Seeds are the tests' own files.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release -p wattwise
nice python3 scripts/mutated.py "$target/release/wattwise" "${1:-5000}" "${2:-1}" ${3:+"$3"}
