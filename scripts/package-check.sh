#!/bin/sh
# Installs, upgrades and purges a package in a Debian of its own (a chroot by debootstrap, kept in target/package-root), over an emulated
# machine whose settings must be as they were afterwards: scripts/package-check.sh FILE.deb
set -eu
deb=${1:?"package-check wants a .deb"}
target=${CARGO_TARGET_DIR:-target}
skip() { echo "package: not installed in a chroot: $1" >&2 && exit 0; }
[ "$(id -u)" -eq 0 ] || skip "only root can"
command -v debootstrap >/dev/null 2>&1 || skip "debootstrap is not installed"

base=$target/package-root
if [ ! -e "$base/etc/debian_version" ]; then
    rm -rf "$base"
    debootstrap --variant=minbase bookworm "$base" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$target/package-root.log" 2>&1 ||
        { rm -rf "$base" && skip "debootstrap failed ($target/package-root.log)"; }
fi
work=$(mktemp -d)
root=$work/root
cp -a "$base" "$root"
emulator=""
leave() {
    umount "$root/sys" 2>/dev/null || true
    umount "$root/proc" 2>/dev/null || true
    if [ -n "$emulator" ]; then
        kill "$emulator" 2>/dev/null || true
        wait "$emulator" 2>/dev/null || true
    fi
    umount "$work/machine" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap leave EXIT
fail() { echo "package: $1" >&2 && exit 1; }
in_root() { chroot "$root" env PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"; }
files() { (cd "$root" && find . -xdev -path ./proc -prune -o -path ./sys -prune -o -path ./var/log -prune -o -path ./var/lib/dpkg -prune -o -path ./var/cache -prune -o -print | LC_ALL=C sort); }

files >"$work/before"
cp "$deb" "$root/a.deb"
in_root dpkg -i /a.deb >"$work/log" 2>&1 || { cat "$work/log" && fail "does not install"; }
in_root wattwise --version | grep -q "^wattwise " || fail "the program does not run"
in_root wattwise machines list >/dev/null || fail "the program does not list its machines"
for file in man/man1/wattwise-compare.1.gz man/man8/wattwised.8.gz wattwise/wattwise-alerts.yml wattwise/wattwise-grafana.json bash-completion/completions/wattwise zsh/vendor-completions/_wattwise \
    fish/vendor_completions.d/wattwise.fish doc/wattwise/copyright doc/wattwise/changelog.gz; do
    [ -s "$root/usr/share/$file" ] || fail "has no $file"
done
mount -t proc proc "$root/proc"
said=$(in_root wattwise locks advise -- sh -c : 2>&1) || case "$said" in *"expected the interposer"*) fail "the interposer is not found: $said" ;; esac

# An emulated machine as the chroot's own: what is set there must be put back by the removal.
have_machine=""
if [ -e /dev/fuse ]; then
    mkdir "$work/machine"
    "$root/usr/bin/wattwise" emulate amd-laptop "$work/machine" >"$work/emulator" 2>&1 &
    emulator=$!
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ ! -d "$work/machine/sys/devices/system/cpu" ] || break
        sleep 0.2
    done
    if [ -d "$work/machine/sys/devices" ] && mount --bind "$work/machine/sys" "$root/sys"; then have_machine=yes; fi
fi
governor=$root/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
if [ -n "$have_machine" ]; then
    before=$(cat "$governor")
    other=performance
    [ "$before" != performance ] || other=powersave
    in_root wattwise --quiet set --governor $other >"$work/log" 2>&1 || { cat "$work/log" && fail "set failed"; }
    [ "$(cat "$governor")" = $other ] || fail "set changed nothing"
fi

# Whether somebody has enabled the unit, and settings that somebody has changed. Nothing enables it by itself.
wants=$root/etc/systemd/system/multi-user.target.wants
enabled=$wants/wattwised.service
[ -f "$root/usr/lib/systemd/system/wattwised.service" ] || fail "has no wattwised.service"
[ ! -L "$enabled" ] || fail "the installation enabled wattwised.service"
mkdir -p "$wants"

# A profile that somebody has chosen, of a daemon that was then killed; profiles of his own; a proof that is not over.
epp=$root/sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference
if [ -n "$have_machine" ]; then
    in_root wattwise --quiet restore >/dev/null || fail "restore failed"
    preferred=$(cat "$epp")
    # Not by in_root: of a function in the background the shell tells its own number.
    chroot "$root" /usr/bin/wattwised --bus none >"$work/daemon" 2>&1 &
    daemon=$!
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        ! in_root wattwise --quiet profile set power-saver >"$work/log" 2>&1 || break
        sleep 0.5
    done
    [ "$(cat "$epp")" = power ] || { cat "$work/daemon" "$work/log" && fail "the profile is not in force"; }
    kill -9 "$daemon" && wait "$daemon" 2>/dev/null || true
    in_root wattwise --quiet set --governor $other >"$work/log" 2>&1 || { cat "$work/log" && fail "set failed"; }
fi
state=$root/var/lib/wattwise
mkdir -p "$state" "$root/etc/wattwise"
[ -n "$have_machine" ] || echo power-saver >"$state/profile"
echo '{}' >"$state/proof.jsonl"
printf '[profile.mine]\nbias = "power"\n' | tee "$root/etc/wattwise/profiles.toml" >"$state/profiles.toml"
kept() { # kept WHEN: what is the user's
    [ "$(cat "$state/profile")" = power-saver ] || fail "$1: the chosen profile is gone"
    for file in "$state/profiles.toml" "$root/etc/wattwise/profiles.toml"; do grep -q mine "$file" || fail "$1: $file is gone"; done
    [ -s "$state/proof.jsonl" ] || fail "$1: the proof is gone"
}

# The next version: the same tree with a higher number.
dpkg-deb -R "$deb" "$work/next"
sed -i 's/^Version: .*/&+next/' "$work/next/DEBIAN/control"
dpkg-deb --root-owner-group -Znone --build "$work/next" "$root/b.deb" >/dev/null
# Once with the unit disabled, back again, and once with it enabled (solus 7821: an upgrade left it disabled).
for state_of_unit in disabled enabled; do
    [ $state_of_unit = disabled ] || { in_root dpkg -i /a.deb >"$work/log" 2>&1 && ln -sf /usr/lib/systemd/system/wattwised.service "$wants/"; }
    in_root dpkg -i /b.deb >"$work/log" 2>&1 || { cat "$work/log" && fail "does not upgrade"; }
    in_root dpkg-query -W -f '${Version}' wattwise | grep -q '+next$' || fail "was not upgraded"
    if [ -L "$enabled" ]; then now=enabled; else now=disabled; fi
    [ $now = $state_of_unit ] || fail "the unit was $state_of_unit, and the upgrade left it $now"
    kept "after an upgrade of a unit that was $now"
done
if [ -n "$have_machine" ]; then [ "$(cat "$governor")" = $other ] || fail "the upgrade changed the policy in force"; fi

in_root dpkg --purge wattwise >"$work/log" 2>&1 || { cat "$work/log" && fail "does not purge"; }
if [ -n "$have_machine" ]; then
    [ "$(cat "$governor")" = "$before" ] || fail "the purge left governor $other, it was $before"
    [ "$(cat "$epp")" = "$preferred" ] || fail "the purge left the preference $(cat "$epp"), it was $preferred"
fi
rm -f "$root/a.deb" "$root/b.deb"
files >"$work/after"
# The group of the meters' readers stays, as Debian's do.
left=$(diff "$work/before" "$work/after" | grep '^[<>]' | grep -v -E '/etc/(group|gshadow|passwd|shadow)-$|^> ./etc/systemd/system/multi-user.target.wants$' || true)
[ -z "$left" ] || fail "the purge left, or took, files: $left"
echo "package: installed, upgraded and purged${have_machine:+, and the emulated machine is as it was}"
