#!/bin/sh
# A job whose memory grows as it goes: unit u walks over a table of 8, 40 or 96 blocks of 832 KiB, and really holds them.
# A small slice can run the first units and never the last.
# Needs only sh, coreutils and awk. Writes one line "unit value" for each unit of [SLUICE_FROM, SLUICE_TO).
set -eu
trap '' TERM # the file says it too, at a time that suits: finish the unit that is begun, report it, leave

# told to yield: see SLUICE_NOTICE_FILE in ../README.md.
told() { grep -qs '"kind":"yield"' "$SLUICE_NOTICE_FILE"; }

# work UNIT prints the unit's line. It may finish within the grace.
work() {
	awk -v u="$1" '
	# blocks that a unit needs: the phases of job.yaml
	function need(u) { return u < 200 ? 8 : u < 280 ? 40 : 96 }
	BEGIN {
		letters = base = "abcdefghijklmnopqrstuvwxyz"
		while (length(base) < 851968) base = base base
		# block b is the alphabet over and over, turned by b letters
		for (b = 0; b < need(u); b++)
			block[b] = substr(base, b % 26 + 1) substr(base, 1, b % 26)
		# 200 letters at places that depend on the unit, folded into one number
		x = u + 1; value = 0
		for (i = 0; i < 200; i++) {
			x = (x * 48271) % 2147483647
			value = (value * 31 + index(letters, substr(block[x % need(u)], int(x / 128) % length(base) + 1, 1))) % 1000003
		}
		print u, value
	}'
}

# report N: every unit before N is complete. Replaced by rename, so that nobody reads half of it.
report() {
	printf '{"progress": %d, "checkpoint": false}\n' "$1" >"$SLUICE_PROGRESS_FILE.new"
	mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
}

at=$SLUICE_FROM
while [ "$at" -lt "$SLUICE_TO" ]; do
	work "$at" >>"$SLUICE_OUTPUT_DIR/values-$SLUICE_FROM"
	at=$((at + 1))
	report "$at"
	[ "$at" -ge "$SLUICE_TO" ] || ! told || exit 85
	sleep "${PACE:-0}" # stands for time on the device
done
