#!/bin/sh
# A chain of TOTAL_STEPS steps, five at a time, each of which needs the state that the last one left. Step i takes FIRST
# seconds times 1 + i/100, which stands for time on the device. Needs only sh, coreutils and awk.
set -eu
trap '' TERM # the file says it too, at a time that suits: finish the five that are begun, report them, leave

# told to yield: see SLUICE_NOTICE_FILE in ../../README.md.
told() { grep -qs '"kind":"yield"' "$SLUICE_NOTICE_FILE"; }

# five FROM STATE prints the state after five more steps and how long they take.
five() {
	awk -v at="$1" -v x="$2" -v first="${FIRST:-0}" 'BEGIN {
		for (i = at; i < at + 5; i++) { x = (x * 48271 + i) % 2147483647; wait += first * (1 + i / 100) }
		printf "%d %.3f\n", x, wait
	}'
}

# keep N STATE leaves the checkpoint of N and then reports it: never one without the other.
keep() {
	echo "$2" >"$SLUICE_CHECKPOINT_DIR/state-$1.new"
	mv "$SLUICE_CHECKPOINT_DIR/state-$1.new" "$SLUICE_CHECKPOINT_DIR/state-$1"
	printf '{"progress": %d, "checkpoint": true}\n' "$1" >"$SLUICE_PROGRESS_FILE.new"
	mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
}

at=$SLUICE_FROM
state=1
[ -z "${SLUICE_RESUME_DIR:-}" ] || state=$(cat "$SLUICE_RESUME_DIR/state-$at")
while [ "$at" -lt "$SLUICE_TO" ]; do
	next=$(five "$at" "$state")
	state=${next% *}
	sleep "${next#* }"
	at=$((at + 5))
	[ "$at" -lt "$TOTAL_STEPS" ] || echo "$state" >"$SLUICE_OUTPUT_DIR/result"
	keep "$at" "$state"
	[ "$at" -ge "$SLUICE_TO" ] || ! told || exit 85
done
