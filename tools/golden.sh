#!/usr/bin/env bash
# Rewrites golden files: runs the tests of every package that has the -update flag, its own or that of picturetest, with it.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t packages < <(grep -rlE --include='*_test.go' 'flag\.Bool\("update"|picturetest\.Golden' cmd internal sdk test | xargs -r -n1 dirname | sort -u | sed 's|^|./|')
[ "${#packages[@]}" -gt 0 ] || { echo 'no package has golden files'; exit 0; }
for package in "${packages[@]}"; do
	go test -count=1 "$package" -update
done
