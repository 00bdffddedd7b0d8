#!/bin/sh
# The traces of `compare --perfetto`, read with Perfetto's own messages: every field is known, slices nest, counts are
# those that were told, and times, joules and C-states are those of the comparison.
#
#     [PROFILE=dev] scripts/perfetto.sh
#
# Installs the `perfetto` package in a virtual environment under the target folder. A minute.
set -eu
cd "$(dirname "$0")/.."
profile=${PROFILE:-dev}
target=${CARGO_TARGET_DIR:-target}
build=$target/perfetto
mkdir -p "$build"
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    echo "perfetto: missing: python3 with venv (python3-venv on Debian)" >&2
    exit 1
fi
python=$build/venv/bin/python
wanted="perfetto==0.59.1 protobuf==7.36.2"
if [ "$(cat "$build/installed" 2>/dev/null)" != "$wanted" ]; then
    echo "perfetto: installing $wanted in $build/venv"
    python3 -m venv --clear "$build/venv"
    # Two words.
    "$python" -m pip install --quiet --disable-pip-version-check $wanted
    echo "$wanted" >"$build/installed"
fi

cargo build --quiet --profile "$profile" -p wattwise
case $profile in dev) folder=debug ;; *) folder=$profile ;; esac
check() { # check WORKLOAD MACHINE POLICY...
    workload=$1 machine=$2
    shift 2
    policies=""
    for policy; do policies="$policies -p $policy"; done
    "$target/$folder/wattwise" compare "$workload" -m "$machine" $policies --exact --json \
        --perfetto "$build/trace" >"$build/comparison.json" 2>"$build/told"
    "$python" scripts/perfetto_check.py "$build/trace" "$build/comparison.json" "$build/told"
}
check build i7-4510u performance schedutil ondemand
check ping-pong alderlake-p-laptop performance powersave
check periodic thinkpad-r51 ondemand
