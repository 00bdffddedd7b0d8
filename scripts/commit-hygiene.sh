#!/bin/sh
# What must not be in the repository: lock files that name a registry's host, merge marks, files that
# no one meant to add.
set -eu
cd "$(dirname "$0")/.."
fail=0
bad=$(git ls-files | grep -E '(^|/)(perf\.data|.*\.orig|.*\.rej|core)$' || true)
[ -z "$bad" ] || { echo "hygiene: these should not be here: $bad" >&2; fail=1; }
bad=$(git grep -lE '^(<<<<<<< |>>>>>>> )' -- ':!scripts' || true)
[ -z "$bad" ] || { echo "hygiene: merge marks in: $bad" >&2; fail=1; }
bad=$(git grep -l '"resolved":' -- '*package-lock.json' || true)
[ -z "$bad" ] || { echo "hygiene: a lock file names download addresses: $bad" >&2; fail=1; }
exit $fail
