#!/bin/sh
# check.sh OUTPUT_DIR [TOTAL] checks that the final weights equal those of an uninterrupted run, bit by bit. It makes that
# run, with the same Python: other versions may round sin and exp in another way.
set -eu
out=${1:?usage: check.sh OUTPUT_DIR [TOTAL]}
total=${2:-4000}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

set -- "$out"/*-*/weights.json
[ $# = 1 ] && [ -f "$1" ] || { echo "not ok: want one folder with one file weights.json in $out"; exit 1; }
mkdir "$work/output" "$work/checkpoint"
env -u SLUICE_RESUME_DIR -u SLUICE_LEASE_FILE -u SLUICE_NOTICE_FILE TOTAL_STEPS="$total" \
	SLUICE_JOB=check SLUICE_SUBJOB=whole SLUICE_FROM=0 SLUICE_TO="$total" SLUICE_DEADLINE=2999-01-01T00:00:00Z \
	SLUICE_PROGRESS_FILE="$work/progress" SLUICE_OUTPUT_DIR="$work/output" SLUICE_CHECKPOINT_DIR="$work/checkpoint" \
	python3 -B "$here/train.py"
cmp -s "$1" "$work/output/weights.json" || { echo "not ok: $1 differs from the weights of an uninterrupted run"; exit 1; }
echo "ok: $total steps, weights as in an uninterrupted run, bit by bit; loss $(tail -n 1 "$work/output"/loss-* | cut -d ' ' -f 2)"
