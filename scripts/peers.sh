#!/bin/sh
# bursts-v1 in wattwise, SimGrid and SimPy, in turns: speeds, and whether they agree (bench/peers/README.md).
#
#     [ROUNDS=3] [PROFILE=dist] [SIMGRID=PREFIX] scripts/peers.sh
#
# SIMGRID is where another SimGrid than the distribution's is installed.
# Installs what is missing through the system's package manager, saying so; without root it names the command.
# Half a minute a round. Wants a quiet machine.
set -eu
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-3}
profile=${PROFILE:-dist}
target=${CARGO_TARGET_DIR:-target}
build=$target/peers
peers=bench/peers
mkdir -p "$build"

missing=""
command -v g++ >/dev/null 2>&1 || missing="$missing g++"
[ -n "${SIMGRID:-}" ] || [ -e /usr/include/simgrid/s4u.hpp ] || missing="$missing libsimgrid-dev"
python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3 python3-venv"
if [ -n "$missing" ]; then
    install="apt-get install --yes --no-install-recommends$missing"
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "peers: missing:$missing; install them with your package manager (names are Debian's)" >&2
        exit 1
    elif [ "$(id -u)" -ne 0 ]; then
        echo "peers: missing:$missing; run: sudo $install" >&2
        exit 1
    fi
    echo "peers: installing$missing"
    apt-get update --quiet=2
    DEBIAN_FRONTEND=noninteractive $install --quiet=2
fi
python=$build/venv/bin/python
if ! cmp -s $peers/requirements.txt "$build/venv/installed"; then
    echo "peers: installing $(cat $peers/requirements.txt) in $build/venv"
    python3 -m venv --clear "$build/venv"
    "$python" -m pip install --quiet --disable-pip-version-check --requirement $peers/requirements.txt
    cp $peers/requirements.txt "$build/venv/installed"
fi

cargo build --quiet --profile "$profile" --features full -p wattwise
g++ -O2 -std=c++17 -Wall -Wextra ${SIMGRID:+"-I$SIMGRID/include" "-L$SIMGRID/lib" "-Wl,-rpath,$SIMGRID/lib"} \
    -o "$build/simgrid" $peers/simgrid.cpp -lsimgrid

results=$build/results.jsonl
: >"$results"
wattwise() { # wattwise SHAPE SECONDS
    "$target/$profile/wattwise" bench sim --job "$1" --seconds "$2" --runs 1 --json >>"$results"
}
# The peers get fewer simulated seconds, since they take longer for each: speeds are of events. `same` is what wattwise
# takes --seconds for, so that joules are of the same time: it cuts `wide` to a twentieth.
round=1
while [ "$round" -le "$rounds" ]; do
    echo "peers: round $round of $rounds" >&2
    while read -r shape cpus tasks seconds same; do
        wattwise "$shape" 1000
        "$build/simgrid" --cpus "$cpus" --tasks "$tasks" --seconds "$seconds" >>"$results"
        "$python" $peers/simpy_bursts.py --cpus "$cpus" --tasks "$tasks" --seconds "$seconds" >>"$results"
        "$build/simgrid" --cpus "$cpus" --tasks "$tasks" --seconds "$seconds" --queue shared >>"$results"
        [ "$round" -gt 1 ] || wattwise "$shape" "$same"
    done <<SHAPES
small 4 8 200 200
crowded 4 64 100 100
wide 224 448 5 100
SHAPES
    round=$((round + 1))
done
version=$(git describe --always --dirty 2>/dev/null || true)
python3 $peers/table.py "$results" "$version"
