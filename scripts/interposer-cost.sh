#!/bin/sh
# What an uncontended pthread_mutex_lock and unlock cost under the interposer, against glibc's alone: rates, in turns within one
# run (bench/peers/mutex.c), for each type of mutex and for a process of one thread; and instructions, by callgrind as the
# difference between two numbers of rounds.
#
#     scripts/interposer-cost.sh [LOCK:POLICY ...]      default: each lock's usual policy; ROUNDS=41 in the environment
set -eu
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cargo build --quiet --release -p wattwise-locks-preload
library=$target/release/libwattwise_pthread.so
cc -O2 -pthread -o "$target/mutex-turns" bench/peers/mutex.c
cc -O2 -pthread -o "$target/uncontended" crates/locks-preload/tests/uncontended.c
[ $# -gt 0 ] || set -- adaptive:spin tas:spin-then-park ttas:spin-then-park ticket:spin-then-park mcs:spin-then-park clh:spin-then-park

echo "lock, rate by glibc's: median, quartiles, M/s"
for case in "normal 2" "normal 1" "recursive 2" "errorcheck 2" "adaptive 2"; do
    echo "type and threads: $case"
    # Two words.
    # shellcheck disable=SC2086
    "$target/mutex-turns" $case "$library" "${ROUNDS:-41}" "$@"
done

if ! command -v valgrind >/dev/null; then
    echo "interposer-cost: no valgrind, so no instructions" >&2
    exit 0
fi
count() { # count LOCK ROUNDS: glibc's own where LOCK is -
    if [ "$1" = - ]; then set -- "$@" env; else set -- "$@" env "LD_PRELOAD=$library" "WATTWISE_LOCK=$1"; fi
    rounds=$2
    shift 2
    "$@" valgrind --tool=callgrind --callgrind-out-file=/dev/null "$target/uncontended" "$rounds" threads 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
echo "instructions of a lock and unlock, with the loop around"
for lock in - "$@"; do
    few=$(count "$lock" 1000)
    many=$(count "$lock" 11000)
    echo "$lock $(((many - few) / 10000))"
done
