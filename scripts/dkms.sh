#!/bin/sh
# Lays the two modules for real machines out as DKMS wants them: FOLDER/NAME-VERSION, each complete in
# itself. Then, as root:  dkms add FOLDER/powerctl-VERSION && dkms install powerctl/VERSION
#
#   sh scripts/dkms.sh [FOLDER]                 default target/dkms
#   sh scripts/dkms.sh --check HEADERS [FOLDER] builds them from there as DKMS would; a warning is an error
set -eu
headers=""
if [ "${1:-}" = --check ]; then
    headers=${2:?"--check wants the folder of a kernel's headers"}
    shift 2
fi
out=${1:-${CARGO_TARGET_DIR:-target}/dkms}
for module in cpufreq_burst powerctl; do
    version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "kernel/$module/dkms.conf")
    to=$out/$module-$version
    rm -rf "$to"
    mkdir -p "$to"
    cp kernel/$module/Kbuild kernel/$module/dkms.conf kernel/$module/*.[ch] kernel/COPYING "$to"
    cp -r kernel/include "$to"
    [ -z "$headers" ] || {
        log=$(make -s -C "$headers" M="$(cd "$to" && pwd)" CONFIG_DEBUG_INFO_BTF_MODULES= modules 2>&1) || {
            echo "dkms: $module does not build:" >&2
            echo "$log" >&2
            exit 1
        }
        ! echo "$log" | grep -i warning >&2 || exit 1
    }
    echo "$to"
done
