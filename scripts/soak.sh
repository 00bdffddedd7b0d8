#!/bin/sh
# record, run, ab --resume, and the interposer under redis and nginx, for as long as asked: scripts/soak.sh SECONDS
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release -p wattwise -p wattwise-locks-preload
python3 scripts/soak.py "${1:-180}" "$target/release/wattwise" "$target/release/libwattwise_pthread.so"
