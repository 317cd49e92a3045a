#!/bin/sh
# check.sh OUTPUT_DIR [TOTAL] renders all frames again, in one go, and compares. Frames of a folder beyond its range do not count.
set -eu
out=${1:?usage: check.sh OUTPUT_DIR [TOTAL]}
total=${2:-600}
for folder in "$out"/*-*; do
	[ -d "$folder" ] || { echo "not ok: $out has no folder FROM-TO"; exit 1; }
	name=$(basename "$folder")
	cat "$folder"/frames-* | awk -v from="${name%%-*}" -v to="${name##*-}" '$1 >= from + 0 && $1 < to + 0'
done | awk -v total="$total" '
	{
		if (seen[$1]++) { print "not ok: frame " $1 " is committed twice"; bad = 1; exit 1 }
		x = $1 + 1
		for (i = 0; i < 500; i++) x = (x * 48271 + $1) % 2147483647
		if (x != $2) { print "not ok: frame " $1 " is " $2 ", want " x; bad = 1; exit 1 }
		n++
	}
	END {
		if (bad) exit 1
		if (n != total) { print "not ok: " n + 0 " of " total " frames are there"; exit 1 }
		print "ok: " n " frames, each once, each as it should be"
	}
'
