#!/bin/sh
# Counts the words and the checksum of one text file for each unit of [SLUICE_FROM, SLUICE_TO), ten files at a time.
# Needs only sh, coreutils and awk. The files are made from the unit's number, so that anybody can check the result.
set -eu
here=$(dirname "$0")
work=$(mktemp -d "$PWD/count.XXXXXX") # in the work directory, which is the subjob's own and goes with it
trap 'rm -rf "$work"' EXIT
trap '' TERM # the file says it too, at a time that suits: finish the ten that are begun, report them, leave

# told to yield: see SLUICE_NOTICE_FILE in ../README.md.
told() { grep -qs '"kind":"yield"' "$SLUICE_NOTICE_FILE"; }

# report N: every unit before N is complete. Replaced by rename, so that nobody reads half of it.
report() {
	printf '{"progress": %d, "checkpoint": false}\n' "$1" >"$SLUICE_PROGRESS_FILE.new"
	mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
}

# batch FROM TO: leaves one output file with a line "unit words checksum" for each unit of [FROM, TO), and reports it. It may
# finish within the grace.
batch() {
	sh "$here/make.sh" "$1" "$2" "$work"
	(cd "$work" && wc -w unit-* && cksum unit-*) | awk '
		$2 == "total" { next }
		NF == 2 { words[$2] = $1 }
		NF == 3 { name = $3; sub("unit-0*", "", name); printf "%d %d %s\n", name, words[$3], $1 }
	' | sort -n >"$work/counts"
	[ "$(wc -l <"$work/counts")" -eq $(($2 - $1)) ] # nothing in the pipeline failed halfway
	mv "$work/counts" "$SLUICE_OUTPUT_DIR/$(printf 'counts-%06d' "$1")"
	rm -f "$work"/unit-*
	report "$2"
}

at=$SLUICE_FROM
while [ "$at" -lt "$SLUICE_TO" ]; do
	next=$((at - at % 10 + 10)) # whole tens, because the job's grid is ten
	[ "$next" -le "$SLUICE_TO" ] || next=$SLUICE_TO
	batch "$at" "$next"
	at=$next
	[ "$at" -ge "$SLUICE_TO" ] || ! told || exit 85
	sleep "${PACE:-0}" # stands for the time that ten units would spend on the device
done
