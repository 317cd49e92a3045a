#!/bin/sh
# check.sh OUTPUT_DIR [PRIME] checks the result of sort.sh without sorting: the numbers are those from 1 to PRIME-1.
set -eu
out=${1:?usage: check.sh OUTPUT_DIR [PRIME]}
prime=${2:-5999993}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

set -- "$out"/*-*/sorted
[ $# = 1 ] && [ -f "$1" ] || { echo "not ok: want one folder with one file sorted in $out"; exit 1; }
{
	seq -f %07.0f 1 $((prime - 1)) | cksum
	seq -f %07.0f 10000 10000 $((prime - 1))
} >"$work/want"
cmp -s "$1" "$work/want" || { echo "not ok: $1 differs from the numbers 1 to $((prime - 1)) in order"; exit 1; }
echo "ok: $((prime - 1)) numbers in order"
