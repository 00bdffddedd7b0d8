#!/bin/sh
# What an uncontended pthread_mutex_lock and unlock cost under the interposer, against glibc's alone: instructions, by
# callgrind as the difference between two numbers of rounds, and rates in turns, the median of ROUNDS (default 21) ratios.
#
#     scripts/interposer-cost.sh [LOCK:POLICY ...]      default: each lock's usual policy
set -eu
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cargo build --quiet --release -p wattwise-locks-preload
library=$target/release/libwattwise_pthread.so
program=$target/uncontended
cc -O2 -pthread -o "$program" crates/locks-preload/tests/uncontended.c
[ $# -gt 0 ] || set -- adaptive:spin tas:spin-then-park ttas:spin-then-park ticket:spin-then-park mcs:spin-then-park clh:spin-then-park

under() { # under LOCK COMMAND...: glibc's own where LOCK is -
    lock=$1
    shift
    if [ "$lock" = - ]; then "$@"; else LD_PRELOAD=$library WATTWISE_LOCK=$lock "$@"; fi
}
instructions() { # instructions LOCK
    count() {
        under "$1" valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$2" threads 2>&1 |
            sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
    }
    few=$(count "$1" 1000)
    many=$(count "$1" 11000)
    echo $(((many - few) / 10000))
}
ratio() { # ratio LOCK: its rate by glibc's, in turns
    for round in $(seq "${ROUNDS:-21}"); do
        glibc=$(under - "$program" 5000000 threads)
        ours=$(under "$1" "$program" 5000000 threads)
        echo "$ours $glibc"
    done | awk '{ print $1 / $2, $1, $2 }' | sort -n | awk '{ row[NR] = $0 } END { print row[int((NR + 1) / 2)] }'
}

echo "lock instructions rate-by-glibc's ours-M/s glibc-M/s"
if command -v valgrind >/dev/null; then echo "glibc $(instructions -)"; else echo "interposer-cost: no valgrind, so no instructions" >&2; fi
for lock in "$@"; do
    n=-
    if command -v valgrind >/dev/null; then n=$(instructions "$lock"); fi
    echo "$lock $n $(ratio "$lock")"
done
