#!/bin/sh
# A short run of every fuzz target: scripts/fuzz.sh TOOLCHAIN SECONDS
set -eu
cd "$(dirname "$0")/../fuzz"
# Safe Rust: its own checks of overflow and bounds find what there is, without a sanitizer at twice the speed.
cargo "+$1" fuzz build --sanitizer none
for target in $(cargo "+$1" fuzz list); do
    echo "fuzz: $target for $2 s"
    # The seeds are the tests' own recordings and the bundled machines.
    mkdir -p "corpus/$target"
    case $target in
        machine_toml) cp ../machines/*.toml "corpus/$target/" ;;
        workload_toml) cp ../workloads/*.toml "corpus/$target/" ;;
        register_toml) cp ../machines/registers/*.toml "corpus/$target/" ;;
        ab_file) cp ../crates/live/tests/ab/*.jsonl "corpus/$target/" ;;
        capture_set) printf '\001%s\n' '3 1' '17 -1' '40' '58 99999999999999999999' >"corpus/$target/seed" ;;
        journal_restore) cp ../crates/control/tests/journal/*.jsonl "corpus/$target/" ;;
        result_json) cp ../crates/cli/tests/results/*.json "corpus/$target/" ;;
        profiles_toml) cp ../crates/daemon/src/builtin.toml "corpus/$target/" ;;
        daemon_request) printf '%s\n' '{"do":"status"}' '{"do":"hold","profile":"a","reason":"b"}' >"corpus/$target/seed" ;;
        acpi_tables) cp ../crates/hw/tests/acpi/*.aml "corpus/$target/" ;;
        perf_data) for f in ../crates/trace/tests/traces/*.perf.zst; do zstd -dqf "$f" -o "corpus/$target/$(basename "$f" .zst)"; done ;;
        trace_dat) for f in ../crates/trace/tests/traces/*.dat.zst; do zstd -dqf "$f" -o "corpus/$target/$(basename "$f" .zst)"; done ;;
        packed_text) for f in ../crates/trace/tests/traces/*.xz; do cp "$f" "corpus/$target"; xz -dc "$f" | gzip -c >"corpus/$target/$(basename "$f" .xz).gz"; done ;;
        ftrace_text) for f in ../crates/trace/tests/traces/*.txt.zst; do zstd -dqf "$f" -o "corpus/$target/$(basename "$f" .zst)"; done ;;
    esac
    cargo "+$1" fuzz run --sanitizer none "$target" -- -max_total_time="$2" -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1
done
