#!/bin/sh
# The newcomer's first command, as README gives it: at least twelve policies on a real recording, an
# answer and how to apply it, valid JSON, and the same bytes twice.
set -eu
run() { cargo run --release --quiet -- "$@"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run compare >"$work/table"
grep -Eq '^(Best|Recommended) of [0-9]+ tried: ' "$work/table"
grep -q '^To apply it on such a machine: sudo wattwise set ' "$work/table"
run compare --json >"$work/one.json"
run compare --json >"$work/two.json"
cmp "$work/one.json" "$work/two.json"
policies=$(grep -c '"policy":' "$work/one.json")
[ "$policies" -ge 12 ] || { echo "first-command: only $policies policies" >&2; exit 1; }
grep -q '"source": "recorded: ' "$work/one.json"
# Several words.
WATTWISE_COMPARISON="$work/one.json" cargo test --quiet ${TEST_SET:--p wattwise --features full,wattwise-live/schema} --test schema
echo "first-command: $policies policies, the same bytes twice"
