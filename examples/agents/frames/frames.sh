#!/bin/sh
# Renders frames, ten at a time: a frame is a number that follows from its own, and PACE seconds stand for the time ten of them
# take on the device. Needs only sh, coreutils and awk.
set -eu
trap '' TERM # the file says it too, at a time that suits: finish the ten that are begun, report them, leave

# told to yield: see SLUICE_NOTICE_FILE in ../../README.md.
told() { grep -qs '"kind":"yield"' "$SLUICE_NOTICE_FILE"; }

# render FROM prints the ten frames from there.
render() {
	awk -v from="$1" 'BEGIN {
		for (u = from; u < from + 10; u++) {
			x = u + 1
			for (i = 0; i < 500; i++) x = (x * 48271 + u) % 2147483647
			print u, x
		}
	}'
}

# report N: every frame before N is complete. Replaced by rename, so that nobody reads half of it.
report() {
	printf '{"progress": %d, "checkpoint": false}\n' "$1" >"$SLUICE_PROGRESS_FILE.new"
	mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
}

at=$SLUICE_FROM
while [ "$at" -lt "$SLUICE_TO" ]; do
	render "$at" >"$SLUICE_OUTPUT_DIR/frames-$at"
	sleep "${PACE:-0}"
	at=$((at + 10))
	report "$at"
	[ "$at" -ge "$SLUICE_TO" ] || ! told || exit 85
done
