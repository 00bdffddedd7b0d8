#!/bin/sh
# hwloc's test trees and util-linux's lscpu dumps, from Debian's source packages, through `wattwise info` and held
# against those projects' own expected output. docs/notes/machine-trees.txt gives the reason of each difference.
set -eu
cd "$(dirname "$0")/.."
. scripts/peer-sources.sh
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
fetch "$target/peers" hwloc
fetch "$target/peers" util-linux
cargo build --quiet --release -p wattwise
python3 scripts/machine-trees.py "$target/release/wattwise" "$target/peers/hwloc" "$target/peers/util-linux" docs/notes/machine-trees.txt
