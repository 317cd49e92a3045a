#!/usr/bin/env bash
# hold.sh BYTES-A-UNIT MOST-BYTES PACE does the units of its subjob, each in PACE seconds, and has so much more memory with each of them up to
# MOST-BYTES; it needs all of it to its end. Told to end it reports what it has done and yields.
set -eu
trap 'exit 85' TERM
part=1044480 # bytes that are taken at a time: just under what an allocator hands out as 1 MiB
units=0 held=()

# grow has what all units up to this one need: it goes on with what it had.
grow() {
	units=$((units + 1))
	local want=$((units * $1 < $2 ? units * $1 : $2))
	while ((${#held[@]} * part < want)); do
		printf -v "held[${#held[@]}]" '%*s' "$part" ''
	done
}

for ((at = 0; at < SLUICE_FROM; at++)); do grow "$1" "$2"; done
for (( ; at < SLUICE_TO; at++)); do
	grow "$1" "$2"
	sleep "$3" &
	wait $! # a signal ends it at once
	echo "${#held[@]}" >"$SLUICE_OUTPUT_DIR/$(printf 'unit-%04d' "$at")"
	printf '{"progress": %d, "checkpoint": false}\n' $((at + 1)) >"$SLUICE_PROGRESS_FILE.new"
	mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
done
