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
for file in man/man1/wattwise-compare.1.gz bash-completion/completions/wattwise zsh/vendor-completions/_wattwise \
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

# A unit that somebody has enabled, and settings that somebody has changed.
wants=$root/etc/systemd/system/multi-user.target.wants
mkdir -p "$wants"
enabled=""
for unit in "$root"/usr/lib/systemd/system/*wattwise*.service; do
    [ -f "$unit" ] || continue
    ln -sf "/usr/lib/systemd/system/$(basename "$unit")" "$wants/"
    enabled=$wants/$(basename "$unit")
    break
done

# The next version: the same tree with a higher number.
dpkg-deb -R "$deb" "$work/next"
sed -i 's/^Version: .*/&+next/' "$work/next/DEBIAN/control"
dpkg-deb --root-owner-group -Znone --build "$work/next" "$root/b.deb" >/dev/null
in_root dpkg -i /b.deb >"$work/log" 2>&1 || { cat "$work/log" && fail "does not upgrade"; }
in_root dpkg-query -W -f '${Version}' wattwise | grep -q '+next$' || fail "was not upgraded"
[ -z "$enabled" ] || [ -L "$enabled" ] || fail "the upgrade disabled $(basename "$enabled")"
if [ -n "$have_machine" ]; then [ "$(cat "$governor")" = $other ] || fail "the upgrade changed the policy in force"; fi

in_root dpkg --purge wattwise >"$work/log" 2>&1 || { cat "$work/log" && fail "does not purge"; }
if [ -n "$have_machine" ]; then
    [ "$(cat "$governor")" = "$before" ] || fail "the purge left governor $other, it was $before"
fi
rm -f "$root/a.deb" "$root/b.deb"
files >"$work/after"
# The group of the meters' readers stays, as Debian's do.
left=$(diff "$work/before" "$work/after" | grep '^[<>]' | grep -v -E '/etc/(group|gshadow|passwd|shadow)-$|^> ./etc/systemd/system/multi-user.target.wants$' || true)
[ -z "$left" ] || fail "the purge left, or took, files: $left"
echo "package: installed, upgraded and purged${have_machine:+, and the emulated machine is as it was}"
