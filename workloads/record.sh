#!/bin/sh
# Makes the bundled recordings anew: workloads/record.sh [NAME...]. Each has its commands in recipes/NAME.sh, with what must be
# installed. Needs root (or CAP_PERFMON and a readable tracefs) and a quiet machine. A recording is what the whole machine did
# while the recipe's command ran; the command's process tree is the work, so it must end with status 0. Look at the foreground
# and at the share of other programs afterwards: wattwise trace FILE.
set -eu
cd "$(dirname "$0")"
wattwise=$(realpath "${WATTWISE:-../target/release/wattwise}")
folder=$PWD

quiet() {
    for _ in $(seq 60); do
        pgrep -x 'rustc|cc1|cargo' >/dev/null || return 0
        sleep 5
    done
    echo "record: the machine is not quiet" >&2
    exit 1
}

# For the recipes: record [OPTIONS] -- COMMAND. Packs last, so that packing is not in the recording.
record() {
    quiet
    sync
    echo "record: $name"
    "$wattwise" record -o "$work/$name.perf" "$@"
    "$wattwise" trace "$work/$name.perf" | grep -E '^(span|CPU|foreground|clock|warning)' || true
    zstd -q -19 -f "$work/$name.perf" -o "$folder/$name.perf.zst"
}

# For the recipes: COMMAND in the background, ended after the recording.
serve() {
    "$@" >/dev/null 2>&1 &
    servers="$servers $!"
}

# For the recipes: until COMMAND succeeds, 20 s at most.
await() {
    for _ in $(seq 100); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.2
    done
    echo "record: $name: '$*' did not succeed" >&2
    exit 1
}

# For the recipes: some files of this system, about as many MB as asked, the same each time on one system.
some_files() {
    find /usr/share/doc /usr/share/perl /usr/lib/python3* -xdev -type f -size -400k 2>/dev/null | LC_ALL=C sort |
        xargs -d '\n' stat -c '%s %n' 2>/dev/null | awk -v most=$(($1 * 1000000)) '{ all += $1; if (all > most) exit; print $2 }'
}

[ $# -gt 0 ] || set -- $(ls recipes | sed 's/\.sh$//')
for name; do
    recipe=$folder/recipes/$name.sh
    [ -f "$recipe" ] || { echo "record: $name: no recipes/$name.sh" >&2; exit 2; }
    for package in $(sed -n 's/^# needs: //p' "$recipe"); do
        dpkg -s "$package" >/dev/null 2>&1 || { echo "record: $name: apt-get install $package" >&2; exit 2; }
    done
    # In a process of its own: what one recipe starts or sets does not reach the next.
    (
        work=$(mktemp -d)
        servers=
        trap 'for server in $servers; do kill "$server" && wait "$server" || true; done 2>/dev/null; rm -rf "$work"' EXIT
        cd "$work"
        . "$recipe"
    )
done
ls -l ./*.perf.zst
