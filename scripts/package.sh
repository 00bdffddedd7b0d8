#!/bin/sh
# Builds the packages: wattwise_VERSION_ARCH.deb, wattwise-dkms_VERSION_all.deb, and an rpm where rpmbuild is there.
#
#   sh scripts/package.sh [OUT]                  of the profile dist; default target/packages
#   PROFILE=dev sh scripts/package.sh [OUT]      quick; called by make, of what the tests have built
#   sh scripts/package.sh --check [OUT]          also packs twice (same bytes), and installs, upgrades and purges in a root of its own
#   sh scripts/package.sh --rebuild [OUT]        also compiles twice, in two folders (same bytes)
#
# Only cargo, dpkg-deb and gzip are needed. Every time in the packages is that of the last commit (SOURCE_DATE_EPOCH).
set -eu
check="" rebuild=""
case "${1:-}" in
--check) check=yes && shift ;;
--rebuild) rebuild=yes && shift ;;
esac
target=${CARGO_TARGET_DIR:-target}
out=${1:-$target/packages}
profile=${PROFILE:-dist}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1)}
export SOURCE_DATE_EPOCH
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
arch=$(dpkg --print-architecture)
# A package that is only tried is not worth minutes of compression.
case "$profile" in dev) squeeze="-Zgzip -z1" payload=w1.gzdio ;; *) squeeze=-Zxz payload=w9.xzdio ;; esac

# Compiles into a folder of cargo's; paths of this machine stay out of what is shipped.
compile() { # compile TARGET
    folder=$1
    if [ "$profile" = dev ] && [ -n "${TEST_SET:-}" ]; then
        # Several words. The tests were built without a date, by which zstd's C library would be built again, and all that has it.
        env -u SOURCE_DATE_EPOCH CARGO_TARGET_DIR="$folder" cargo test --locked --quiet --no-run $TEST_SET
        CARGO_TARGET_DIR=$folder/interposer cargo build --locked --quiet -p wattwise-locks-preload
        return
    fi
    set -- -p wattwise --bin wattwise --features wattwise/full
    [ ! -e crates/daemon/Cargo.toml ] || set -- "$@" -p wattwise-daemon --bin wattwised
    if [ "$profile" = dist ]; then
        RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/src --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
        export RUSTFLAGS
    fi
    CARGO_TARGET_DIR=$folder cargo build --locked --profile "$profile" --quiet "$@"
    # In a folder of its own: beside the program as it is tested there is none.
    CARGO_TARGET_DIR=$folder/interposer cargo build --locked --profile "$profile" --quiet -p wattwise-locks-preload
}

built_in() { # built_in TARGET: where cargo puts a profile's results
    case "$profile" in dev) echo "$1/debug" ;; *) echo "$1/$profile" ;; esac
}

put() { # put MODE TO FILE...: those of the files that there are
    mode=$1 to=$2 && shift 2
    for file in "$@"; do
        [ -f "$file" ] || continue
        mkdir -p "$to"
        install -m "$mode" "$file" "$to/"
    done
}

packed() { # packed FILE FROM: compressed without its name and time
    mkdir -p "$(dirname "$1")"
    gzip -9n <"$2" >"$1"
}

# What the package holds, as a tree.
stage() { # stage TREE BUILT
    tree=$1 built=$2
    rm -rf "$tree"
    put 755 "$tree/usr/bin" "$built/wattwise" "$built/wattwised"
    strip --strip-unneeded "$tree"/usr/bin/*
    put 644 "$tree/usr/lib/wattwise" "$(built_in "$(dirname "$built")/interposer")/libwattwise_pthread.so"
    put 644 "$tree/usr/lib/systemd/system" packaging/systemd/*.service packaging/systemd/*.timer packaging/systemd/*.path packaging/systemd/*.socket
    put 644 "$tree/usr/share/dbus-1/system.d" packaging/dbus/*.conf
    put 644 "$tree/usr/share/dbus-1/system-services" packaging/dbus/*.service
    put 644 "$tree/usr/share/dbus-1/interfaces" packaging/dbus/*.xml
    put 644 "$tree/usr/share/polkit-1/actions" packaging/polkit/*.policy packaging/dbus/*.policy
    put 644 "$tree/usr/share/polkit-1/rules.d" packaging/polkit/*.rules
    put 644 "$tree/usr/lib/udev/rules.d" packaging/udev/*.rules
    put 644 "$tree/etc/wattwise" packaging/etc/*
    put 644 "$tree/usr/share/wattwise" packaging/share/* packaging/prometheus/*
    # From the commands themselves.
    "$built/wattwise" --quiet man --out "$tree/man" >/dev/null
    for page in "$tree"/man/*; do
        packed "$tree/usr/share/man/man1/$(basename "$page").gz" "$page"
    done
    rm -r "$tree/man"
    for page in packaging/man/*.8; do
        packed "$tree/usr/share/man/man8/$(basename "$page").gz" "$page"
    done
    mkdir -p "$tree/usr/share/bash-completion/completions" "$tree/usr/share/zsh/vendor-completions" "$tree/usr/share/fish/vendor_completions.d"
    "$built/wattwise" completions bash >"$tree/usr/share/bash-completion/completions/wattwise"
    "$built/wattwise" completions zsh >"$tree/usr/share/zsh/vendor-completions/_wattwise"
    "$built/wattwise" completions fish >"$tree/usr/share/fish/vendor_completions.d/wattwise.fish"
    docs=$tree/usr/share/doc/wattwise
    put 644 "$docs" README.md docs/*.md
    packed "$docs/changelog.gz" CHANGELOG.md
    copyright >"$docs/copyright"
    chmod 644 "$docs/copyright" && find "$tree" -type d -exec chmod 755 {} +
}

copyright() {
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    printf '\nFiles: *\nCopyright: the authors of wattwise\nLicense: Apache-2.0 or Expat\n'
    printf '\nLicense: Apache-2.0\n See /usr/share/common-licenses/Apache-2.0.\n\nLicense: Expat\n'
    sed 's/^$/./; s/^/ /' LICENSE-MIT
}

units() { # units TREE: the daemons' names, for the maintainer scripts
    for unit in "$1"/usr/lib/systemd/system/*.service; do
        [ ! -f "$unit" ] || basename "$unit"
    done | tr '\n' ' '
}

scripts_of() { # scripts_of TREE INTO
    for script in postinst prerm postrm; do
        sed "s/@UNITS@/$(units "$1")/" "packaging/deb/$script" >"$2/$script"
        chmod 755 "$2/$script"
    done
}

pack_deb() { # pack_deb TREE OUT
    tree=$1
    mkdir -p "$tree/DEBIAN"
    glibc=$(objdump -T "$tree"/usr/bin/* "$tree"/usr/lib/wattwise/* | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 | cut -d_ -f2)
    {
        printf 'Package: wattwise\nVersion: %s\nArchitecture: %s\n' "$version" "$arch"
        printf 'Maintainer: the authors of wattwise <wattwise@example.org>\nSection: utils\nPriority: optional\n'
        printf 'Depends: libc6 (>= %s), libgcc-s1, passwd\n' "$glibc"
        printf 'Recommends: dbus\nSuggests: wattwise-dkms, linux-perf, fuse3\n'
        printf 'Installed-Size: %s\n' "$(du -sk --apparent-size "$tree" | cut -f1)"
        printf 'Description: %s\n' "$(cat packaging/description)"
    } >"$tree/DEBIAN/control"
    scripts_of "$tree" "$tree/DEBIAN"
    (cd "$tree" && find etc -type f 2>/dev/null | LC_ALL=C sort | sed 's|^|/|') >"$tree/DEBIAN/conffiles" || true
    [ -s "$tree/DEBIAN/conffiles" ] || rm "$tree/DEBIAN/conffiles"
    sums "$tree"
    build "$tree" "$2/wattwise_${version}_$arch.deb"
}

sums() { # sums TREE
    (cd "$1" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) >"$1/DEBIAN/md5sums"
}

build() { # build TREE FILE
    find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    # shellcheck disable=SC2086 # more than one word
    dpkg-deb --root-owner-group $squeeze --build "$1" "$2" >/dev/null
    echo "$2"
}

# The kernel modules' source, for DKMS to build: a package of its own.
pack_dkms() { # pack_dkms TREE OUT
    tree=$1
    rm -rf "$tree"
    mkdir -p "$tree/usr/src" "$tree/DEBIAN" "$tree/usr/share/doc/wattwise-dkms"
    modules=$(sh scripts/dkms.sh "$tree/usr/src" | sed 's|.*/||')
    find "$tree" -type d -exec chmod 755 {} + && find "$tree/usr/src" -type f -exec chmod 644 {} +
    cp kernel/COPYING "$tree/usr/share/doc/wattwise-dkms/copyright"
    {
        printf 'Package: wattwise-dkms\nVersion: %s\nArchitecture: all\n' "$version"
        printf 'Maintainer: the authors of wattwise <wattwise@example.org>\nSection: kernel\nPriority: optional\n'
        printf 'Depends: dkms\nEnhances: wattwise\n'
        printf 'Description: wattwise kernel modules as source for DKMS\n The cpufreq governor burst, and powerctl, which gives each task its own speed.\n'
    } >"$tree/DEBIAN/control"
    {
        printf '#!/bin/sh\nset -e\n[ "$1" = configure ] || exit 0\n'
        for module in $modules; do
            # A kernel for which it does not build must not keep the package from being installed.
            printf 'dkms add -m %s -v %s 2>/dev/null || true\n' "${module%-*}" "${module##*-}"
            printf 'dkms install -m %s -v %s || echo "wattwise-dkms: %s does not build for this kernel" >&2\n' "${module%-*}" "${module##*-}" "$module"
        done
    } >"$tree/DEBIAN/postinst"
    {
        printf '#!/bin/sh\nset -e\n'
        for module in $modules; do
            printf 'dkms remove -m %s -v %s --all 2>/dev/null || true\n' "${module%-*}" "${module##*-}"
        done
    } >"$tree/DEBIAN/prerm"
    chmod 755 "$tree/DEBIAN/postinst" "$tree/DEBIAN/prerm"
    sums "$tree"
    build "$tree" "$2/wattwise-dkms_${version}_all.deb"
}

# The same tree, description and scripts as an rpm.
pack_rpm() { # pack_rpm TREE OUT
    command -v rpmbuild >/dev/null 2>&1 || { echo "package: no rpm: rpmbuild is not installed (Debian: rpm)" >&2 && return 0; }
    top=$(mktemp -d)
    tree=$(cd "$1" && pwd)
    mkdir -p "$top/scripts"
    scripts_of "$tree" "$top/scripts"
    body() { sed '1d; /^exit 0$/d' "$top/scripts/$1"; }
    {
        printf 'Name: wattwise\nVersion: %s\nRelease: 1\nSummary: %s\n' "$version" "$(head -1 packaging/description)"
        printf 'License: Apache-2.0 OR MIT\nURL: https://github.com/wattwise/wattwise\nAutoReq: yes\n'
        printf '%%description\n%s\n' "$(sed '1d; s/^ //' packaging/description)"
        printf '%%install\nmkdir -p %%{buildroot}\ncp -a %s/etc %s/usr %%{buildroot}/ 2>/dev/null || cp -a %s/usr %%{buildroot}/\n' "$tree" "$tree" "$tree"
        # rpm says by a number what dpkg says by a word.
        printf '%%post\nif [ "$1" -gt 1 ]; then set -- configure upgrade; else set -- configure ""; fi\n%s\n' "$(body postinst)"
        printf '%%preun\nif [ "$1" -eq 0 ]; then set -- remove; else set -- upgrade; fi\n%s\n' "$(body prerm)"
        printf '%%postun\nif [ "$1" -eq 0 ]; then set -- purge; else set -- upgrade; fi\n%s\n' "$(body postrm)"
        printf '%%files\n'
        (cd "$tree" && find . -type f ! -path './DEBIAN/*' -printf '/%P\n' | LC_ALL=C sort | sed 's|^/etc/|%config(noreplace) /etc/|')
    } >"$top/wattwise.spec"
    rpmbuild -bb --quiet --define "_topdir $top" --define "_rpmdir $top/out" --define "_build_id_links none" \
        --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
        --define "_buildhost reproducible" --define "_binary_payload $payload" --define "__os_install_post %{nil}" --define "debug_package %{nil}" \
        "$top/wattwise.spec" >"$top/log" 2>&1 || { cat "$top/log" >&2 && rm -rf "$top" && return 1; }
    find "$top/out" -name '*.rpm' -exec cp {} "$2/" \; -exec basename {} \; | sed "s|^|$2/|"
    rm -rf "$top"
}

make_all() { # make_all BUILT OUT
    mkdir -p "$2"
    work=$(mktemp -d)
    stage "$work/tree" "$1"
    pack_deb "$work/tree" "$2"
    pack_rpm "$work/tree" "$2"
    pack_dkms "$work/dkms" "$2"
    rm -rf "$work"
}

same() { # same A B
    for file in "$1"/*.deb "$1"/*.rpm; do
        [ -f "$file" ] || continue
        cmp "$file" "$2/$(basename "$file")"
    done
    echo "package: built twice, the same bytes"
}

compile "$target"
make_all "$(built_in "$target")" "$out"
if [ -n "$rebuild" ]; then
    compile "$target/again"
    make_all "$(built_in "$target/again")" "$out/again"
    same "$out" "$out/again"
fi
if [ -n "$check" ]; then
    sleep 1
    make_all "$(built_in "$target")" "$out/again" >/dev/null
    same "$out" "$out/again"
    sh scripts/package-check.sh "$out/wattwise_${version}_$arch.deb"
fi
