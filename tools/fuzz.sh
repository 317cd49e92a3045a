#!/usr/bin/env bash
# Runs every fuzz target of the module in turn, each for the time given (default 10s). Go fuzzes one target of one
# package at a time, so the list is taken from the sources.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}

found=0
while IFS=: read -r file target; do
	found=$((found + 1))
	printf '== %s %s\n' "$(dirname "$file")" "$target"
	go test -run '^$' -fuzz "^${target}\$" -fuzztime "$time" "./$(dirname "$file")"
done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' cmd internal sdk | sed 's/func //' | sort)
[ "$found" -gt 0 ] || { echo 'no fuzz target found under cmd, internal and sdk: the search in tools/fuzz.sh is broken' >&2; exit 1; }
printf '%d fuzz targets, %s each\n' "$found" "$time"
