#!/bin/sh
# check.sh OUTPUT_DIR [TOTAL] goes through the whole chain in one go and compares its last state.
set -eu
out=${1:?usage: check.sh OUTPUT_DIR [TOTAL]}
total=${2:-200}
set -- "$out"/*-*/result
[ $# = 1 ] && [ -f "$1" ] || { echo "not ok: want one folder with one file result in $out"; exit 1; }
want=$(awk -v n="$total" 'BEGIN { x = 1; for (i = 0; i < n; i++) x = (x * 48271 + i) % 2147483647; printf "%d\n", x }')
got=$(cat "$1")
[ "$got" = "$want" ] || { echo "not ok: the chain ends with $got, want $want"; exit 1; }
echo "ok: $total steps, one after another, end with $want"
