#!/bin/sh
# The locks under the tools that see what a run does not: scripts/locks.sh loom | miri TOOLCHAIN | tsan TOOLCHAIN
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
case $1 in
loom) # every order of memory accesses, for two and three threads
    RUSTFLAGS="--cfg loom" cargo test --quiet --release --target-dir "$target/loom" \
        -p wattwise-locks -p wattwise-locks-preload --test loom ;;
miri) # undefined behaviour in the unit tests and the safe interface
    rustup component add miri rust-src --toolchain "$2" >/dev/null 2>&1 || {
        echo "locks: miri cannot be installed for $2; not run" >&2
        [ "${CI:-}" != true ] && exit 0 || exit 1
    }
    # Permissive: a queue's node passes through an integer in its lock's token.
    MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks" \
        cargo "+$2" miri test --quiet --target-dir "$target/miri" -p wattwise-locks --lib --test mutex ;;
tsan) # data races in a storm of threads
    rustup component add rust-src --toolchain "$2" >/dev/null 2>&1 || true
    host=$(rustc -vV | sed -n 's/^host: //p')
    RUSTFLAGS="-Zsanitizer=thread" cargo "+$2" test --quiet --release --target-dir "$target/tsan" --target "$host" \
        -Zbuild-std -p wattwise-locks --test stress ;;
*) echo "usage: scripts/locks.sh loom | miri TOOLCHAIN | tsan TOOLCHAIN" >&2; exit 2 ;;
esac
