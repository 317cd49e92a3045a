#!/bin/sh
# A job whose memory grows as it goes: unit u walks over a table of 8, 40 or 96 blocks of 832 KiB, and really holds them.
# A small slice can run the first units and never the last.
# Needs only sh, coreutils and awk. Writes one line "unit value" for each unit of [SLUICE_FROM, SLUICE_TO).
set -eu
stop=
trap 'stop=yes' TERM # the deadline is near: finish the unit that is begun, report it, leave

# work UNIT prints the unit's line. The signal goes to the whole group; the unit in work may finish within the grace.
work() (
	trap '' TERM
	exec awk -v u="$1" '
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
)

# report N: every unit before N is complete. Replaced by rename, so that nobody reads half of it.
report() (
	trap '' TERM
	printf '{"progress": %d, "checkpoint": false}\n' "$1" >"$SLUICE_PROGRESS_FILE.new"
	exec mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
)

at=$SLUICE_FROM
while [ "$at" -lt "$SLUICE_TO" ]; do
	work "$at" >>"$SLUICE_OUTPUT_DIR/values-$SLUICE_FROM"
	at=$((at + 1))
	report "$at"
	[ -z "$stop" ] || [ "$at" -ge "$SLUICE_TO" ] || exit 85
	sleep "${PACE:-0}" || true # stands for time on the device; the signal may end it
done
