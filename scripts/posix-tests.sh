#!/bin/bash
# posixtestsuite and glibc's own tests of mutexes and condition variables, unchanged, under the interposer:
#
#     scripts/posix-tests.sh [--quick] [--all | LOCK:POLICY ...]      default: every lock with its usual policy
#
# --quick leaves out the tests that take glibc longer than 3 s: some minutes. --all takes every policy that sleeps or yields
# with every lock, and all others with one: an hour.
#
# What glibc passes alone, each lock must pass. Sources come from Debian's source packages by name, and stay with what is
# built in target/peers. Tests that do not build outside their own tree are named. At the end a table: a row for each
# lock, and each test that it fails. Exit code 1: a lock fails what glibc passes and docs/notes/posix-tests.txt does not
# give a reason for.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/peer-sources.sh
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
peers=$target/peers
tests=$peers/tests
failures=$peers/failed
reasons=docs/notes/posix-tests.txt
# Most tests sleep; those that time each other out are given time for that.
jobs=${POSIX_JOBS:-16}
seconds=${POSIX_SECONDS:-60}
# glibc's end by themselves: after 20 seconds or their TIMEOUT (100 at most) times the factor below. This is for one that does not.
seconds_glibc=${POSIX_SECONDS_GLIBC:-320}

quick=''
if [ "${1:-}" = --quick ]; then
    quick=3
    shift
fi

rm -rf "$failures"
mkdir -p "$failures"
fetch "$peers" posixtestsuite
fetch "$peers" glibc --wildcards '*/nptl/tst-*' '*/sysdeps/pthread/tst-*' '*/support/*' '*/test-skeleton.c' \
    '*/include/intprops.h' '*/include/array_length.h' '*/include/libc-diag.h'

build_suite() {
    local suite=$peers/posixtestsuite out file
    out=$tests/posixtestsuite
    mkdir -p "$out"
    for file in "$suite"/conformance/interfaces/pthread_{mutex,cond}*/[0-9]*-[0-9]*.c "$suite"/functional/threads/{condvar,schedule}/*.c; do
        local name=${file#"$suite"/}
        name=${name#conformance/interfaces/}
        name=${name%.c}
        compile "$out/${name//\//.}" "$file" -D_XOPEN_SOURCE=600 -D_GNU_SOURCE -I "$suite/include" -I "$suite/functional/threads/include"
    done
}

# glibc's support library, as far as these tests ask for it, with what its build would define.
build_glibc() {
    local glibc=$peers/glibc out=$tests/glibc shim=$peers/shim file name
    mkdir -p "$out" "$shim/elf" "$shim/objects"
    cp "$glibc"/include/{intprops,array_length,libc-diag}.h "$shim/"
    # No tunables: a test of lock elision then takes it to be off, as it is.
    : >"$shim/config.h"
    : >"$shim/elf/dl-tunables.h"
    local flags=(-std=gnu11 -D_GNU_SOURCE -DTIMEOUTFACTOR=3 -include limits.h -I "$shim" -I "$glibc" -I "$glibc/support" -I "$glibc/sysdeps/pthread" -I "$glibc/nptl")
    local path
    for path in SRCDIR OBJDIR OBJDIR_ELF_LDSO INSTDIR LIBDIR BINDIR SBINDIR SLIBDIR ROOTSBINDIR COMPLOCALEDIR; do
        flags+=("-D${path}_PATH=\"$shim\"")
    done
    for name in support_paths xchdir support_test_main check support_record_failure write_message xmalloc xcalloc xrealloc xstrdup xasprintf xsignal \
        temp_file delayed_exit oom_error xmmap xmunmap xmprotect xsigaction xfork xwaitpid xclock_gettime timespec timespec-add \
        timespec-sub xwrite xclose xopen support_test_compare_failure support_test_verify_impl xsysconf support_process_state \
        support_need_proc support_set_small_thread_stack_size xraise support_mutex_pi_monotonic xfopen xfclose xgetline \
        xposix_memalign $(cd "$glibc/support" && basename -s .c -a xpthread_*.c); do
        [ -e "$shim/objects/$name.o" ] || cc -O1 -w "${flags[@]}" -c "$glibc/support/$name.c" -o "$shim/objects/$name.o"
    done
    rm -f "$shim/support.a"
    ar rc "$shim/support.a" "$shim"/objects/*.o
    for file in "$glibc"/{nptl,sysdeps/pthread}/tst-{mutex,cond}*.c; do
        case $file in
        # The same tests, linked statically (nothing is interposed there) or with a wider time_t (on 64 bits the same).
        *-static.c | *-time64.c) continue ;;
        esac
        compile "$out/$(basename "$file" .c)" "$file" "${flags[@]}" "$shim/support.a"
    done
}

compile() { # compile OUT FILE FLAGS...: once
    local out=$1 file=$2 libraries=()
    shift 2
    [ -x "$out" ] && return
    local flag
    local flags=()
    for flag in "$@"; do
        case $flag in *.a) libraries+=("$flag") ;; *) flags+=("$flag") ;; esac
    done
    cc -O1 -w "${flags[@]}" -o "$out" "$file" "${libraries[@]}" -pthread -lrt -lm 2>"$out.log" ||
        echo "does not build outside its tree: ${out#"$tests"/}: $(grep -m1 -E 'error|undefined' "$out.log")"
}

# Some tests set the machine's clock where they may: as root without that right, nothing else changes for them.
without=() within=""
if [ "$(id -u)" = 0 ]; then
    command -v setpriv >/dev/null || { echo "posix-tests: as root it needs setpriv (util-linux): two tests set the clock" >&2; exit 3; }
    without=(setpriv --bounding-set=-sys_time)
    # Whoever a test leaves behind ends with it: some begin a session of their own.
    within="unshare --pid --fork --kill-child --mount-proc"
    ! "${without[@]}" date -s "$(date)" >/dev/null 2>&1 || { echo "posix-tests: the right to set the clock is still there" >&2; exit 3; }
fi

# One test in a folder of its own; prints "NAME CODE SECONDS". What a failed one printed stays in $peers/failed.
one() { # one LIBRARY LOCK TEST
    local test=$3 code=0 folder limit=$seconds began=$SECONDS name
    name=${test#"$tests"/}
    case $name in glibc/*) limit=$seconds_glibc ;; esac
    folder=$(mktemp -d)
    (
        cd "$folder"
        if [ -n "$2" ]; then
            $within timeout -k 5 "$limit" env "WATTWISE_LOCK=$2" "LD_PRELOAD=$1" "$test" >out 2>&1
        else
            $within timeout -k 5 "$limit" "$test" >out 2>&1
        fi
    ) </dev/null 2>/dev/null || code=$?
    [ "$code" = 0 ] || cp "$folder/out" "$failures/${2:-glibc}.${name//\//.}" || true
    rm -rf "$folder"
    echo "$name $code $((SECONDS - began))"
}
export -f one
export tests seconds seconds_glibc within failures

run() { # run LIBRARY LOCK < names
    sed "s|^|$tests/|" | "${without[@]}" xargs -P "$jobs" -I{} bash -c 'one "$@"' - "$1" "$2" {} | sort
}

build_suite
build_glibc
cargo build --quiet --release -p wattwise-locks-preload
library=$target/release/libwattwise_pthread.so

# What glibc passes, three times in a row: a test that now fails and then passes says nothing of a lock.
find "$tests" -type f -perm -u+x -printf '%P\n' | sort >"$peers/all"
cp "$peers/all" "$peers/passed"
rm -f "$peers"/alone.*
for round in 1 2 3; do
    seconds=${quick:-$seconds} seconds_glibc=${quick:-$seconds_glibc} run "" "" <"$peers/passed" >"$peers/alone.$round"
    awk '$2 == 0 { print $1 }' "$peers/alone.$round" >"$peers/passed"
done
echo "glibc alone passes $(wc -l <"$peers/passed") of $(wc -l <"$peers/all")${quick:+ within $quick s}"
unasked=$peers/all
if [ -n "$quick" ]; then
    # What the short limit ended (124) is for the whole run.
    unasked=$peers/ended
    cat "$peers"/alone.* | awk '$2 == 124 { print $1 }' | grep -vxFf - "$peers/all" >"$unasked"
fi
{ grep -vxFf "$peers/passed" "$unasked" || true; } | while read -r name; do
    echo "  not asked of a lock: $name (glibc: $(grep -hF "$name " "$peers"/alone.* | awk '{ print $2 }' | tr '\n' ' '))"
done

if [ $# = 0 ]; then
    set -- adaptive:spin
    for lock in tas ttas ticket mcs clh; do set -- "$@" "$lock:spin-then-park"; done
elif [ "$1" = --all ]; then
    set -- adaptive:spin
    for lock in tas ttas ticket mcs clh adaptive; do
        for policy in park spin-then-park yield; do set -- "$@" "$lock:$policy"; done
    done
    for policy in spin user-wait kernel-wait tstate+spin pstate+spin tstate+spin-then-park pstate+spin-then-park; do
        set -- "$@" "mcs:$policy"
    done
fi

touch "$reasons"
failed=0
echo "| lock | passed | failed |"
echo "|---|---|---|"
for lock in "$@"; do
    run "$library" "$lock" <"$peers/passed" >"$peers/under"
    # Again, alone: a test that times itself may fail for the others that run beside it.
    awk '$2 != 0 { print $1 }' "$peers/under" >"$peers/again"
    jobs=1 run "$library" "$lock" <"$peers/again" >"$peers/under.again"
    bad=$(awk '$2 != 0 { print $1 " (" $2 ")" }' "$peers/under.again")
    total=$(wc -l <"$peers/passed")
    echo "| $lock | $((total - $(printf '%s' "$bad" | grep -c . || true))) of $total | $(echo $bad) |"
    # A reason is for one exit status where it names one, and for any failure where it does not.
    while read -r name status; do
        [ -z "$name" ] || grep -qF -e "$lock $name:" -e "* $name:" -e "$lock $name $status:" -e "* $name $status:" "$reasons" || failed=1
    done <<<"$bad"
done
exit $failed
