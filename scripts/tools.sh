#!/bin/sh
# Installs what `make test` needs beside Rust, through the system's package manager, and with `verify` what the rest
# needs: scripts/tools.sh [verify]. Without root it names the command to run instead. Nothing is installed that is
# already there.
set -eu
tier=${1:-test}

missing=""
need() { # need COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need perf linux-perf
need chromium chromium
need npm npm
need cpupower linux-cpupower
need fusermount3 fuse3
need zstd zstd
need cc gcc
need make make
need strace strace
# Recordings in the dress that trace-cmd gives them.
need trace-cmd trace-cmd
# systemd's interface is tried on a bus of the test's own.
need dbus-daemon dbus-daemon
# The daemon's interface for desktops: their own client, a client for the new name, and the score of its unit.
need powerprofilesctl power-profiles-daemon
need busctl systemd
# The studies' own workloads, for the presets.
need nuttcp nuttcp
# The link between nuttcp's two ends.
need ip iproute2
need tbench dbench
need cyclictest rt-tests
need stress-ng stress-ng
if [ "$tier" = verify ]; then
    # The lab: QEMU, a static shell for its guests, and what unpacks and reads kernel packages and their modules.
    need qemu-system-x86_64 qemu-system-x86
    need xz xz-utils
    need dpkg-deb dpkg
    # Packages are installed and purged in a Debian of their own.
    need debootstrap debootstrap
    need rpmbuild rpm
    # The daemon's metrics are scraped; who may choose a profile is judged; both by Debian's own. A client's tests need its bindings.
    need prometheus prometheus
    need pkaction polkitd
    [ -e /usr/lib/python3/dist-packages/dbus ] || missing="$missing python3-dbus python3-gi python3-venv"
    [ -x /bin/busybox ] || [ -x /usr/bin/busybox ] || missing="$missing busybox-static"
    # What runs for long under the interposer.
    need redis-server redis-server
    need redis-benchmark redis-tools
    need nginx nginx-light
    need python3 python3
    [ -e /usr/include/libelf.h ] || missing="$missing libelf-dev"
    # The lab's kernel that is built here (make soak).
    need flex flex
    need bison bison
    need bc bc
fi

if [ -n "$missing" ]; then
    install="apt-get install --yes --no-install-recommends$missing"
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "tools: missing:$missing; install them with your package manager (names are Debian's)" >&2
        exit 1
    elif [ "$(id -u)" -ne 0 ]; then
        echo "tools: missing:$missing; run: sudo $install" >&2
        exit 1
    fi
    echo "tools: installing$missing"
    apt-get update --quiet=2
    DEBIAN_FRONTEND=noninteractive $install --quiet=2
fi

[ "$tier" = verify ] || exit 0

# The fuzzers: a nightly toolchain and cargo-fuzz. cargo-deny: licences and advisories.
if ! rustup toolchain list 2>/dev/null | grep -q nightly; then
    echo "tools: installing the nightly toolchain for the fuzzers"
    rustup toolchain install nightly --profile minimal
fi
cargo install --list | grep -q '^cargo-fuzz ' || {
    echo "tools: installing cargo-fuzz"
    cargo install --locked --quiet cargo-fuzz
}
cargo install --list | grep -q '^cargo-deny ' || {
    echo "tools: installing cargo-deny"
    cargo install --locked --quiet cargo-deny
}
