#!/bin/sh
# Renders frames, ten at a time: a frame is a number that follows from its own, and PACE seconds stand for the time ten of them
# take on the device. Needs only sh, coreutils and awk.
set -eu
stop=
trap 'stop=yes' TERM # the deadline is near: finish the ten that are begun, report them, leave

# render FROM prints the ten frames from there. The signal goes to the whole group; what is begun may finish.
render() (
	trap '' TERM
	exec awk -v from="$1" 'BEGIN {
		for (u = from; u < from + 10; u++) {
			x = u + 1
			for (i = 0; i < 500; i++) x = (x * 48271 + u) % 2147483647
			print u, x
		}
	}'
)

# report N: every frame before N is complete. Replaced by rename, so that nobody reads half of it.
report() (
	trap '' TERM
	printf '{"progress": %d, "checkpoint": false}\n' "$1" >"$SLUICE_PROGRESS_FILE.new"
	exec mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
)

# leave: the signal came before a part of this program could say that it wants to finish. What was reported counts.
leave() {
	[ -z "$stop" ] || exit 85
	exit 1
}

at=$SLUICE_FROM
while [ "$at" -lt "$SLUICE_TO" ]; do
	render "$at" >"$SLUICE_OUTPUT_DIR/frames-$at" || leave
	sleep "${PACE:-0}" || true # the signal may end it
	at=$((at + 10))
	report "$at" || leave
	[ -z "$stop" ] || [ "$at" -ge "$SLUICE_TO" ] || exit 85
done
