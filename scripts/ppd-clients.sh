#!/bin/sh
# Others' programs against wattwised on buses of their own: the tests of the client that python-dbusmock has for its template of
# power-profiles-daemon, unchanged, and polkit's daemon, which judges who may choose a profile: scripts/ppd-clients.sh [BIN]
# Needs root for polkit; says so and leaves it out without.
set -eu
cd "$(dirname "$0")/.."
bin=${1:-target/debug}
[ -x "$bin/wattwised" ] || { echo "ppd-clients: no $bin/wattwised; cargo build -p wattwise-daemon --features dbus" >&2 && exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The release's tests are not in its package; python3-dbus and python3-gi are the system's, as they are built for its Python.
/usr/bin/python3 -m venv --system-site-packages "$work/venv"
"$work/venv/bin/pip" --quiet download --no-deps --no-binary :all: --dest "$work" python-dbusmock==0.38.1
"$work/venv/bin/pip" --quiet install "$work"/python_dbusmock-*.tar.gz
tar -C "$work" -xf "$work"/python_dbusmock-*.tar.gz
"$work/venv/bin/python" scripts/ppd_clients.py "$bin" "$work"/python_dbusmock-*/tests/test_power_profiles_daemon.py
if [ "$(id -u)" -eq 0 ]; then
    # In a mount namespace of its own: polkit reads its actions and rules from the system's folders alone.
    unshare --mount "$work/venv/bin/python" scripts/ppd_clients.py "$bin" polkit
else
    echo "ppd-clients: polkit left out: it wants root"
fi
