#!/bin/sh
# Instructions of one uncontended acquire and release, by callgrind: the difference between two numbers of
# rounds, so that starting up does not count. Needs valgrind.
set -eu
cd "$(dirname "$0")/.."
cargo build --quiet --release -p wattwise-locks --example uncontended
program=${CARGO_TARGET_DIR:-target}/release/examples/uncontended
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
for lock in $("$program"); do
    few=$(count "$lock" 1000)
    many=$(count "$lock" 11000)
    echo "$lock $(((many - few) / 10000))"
done
