#!/bin/sh
# check.sh OUTPUT_DIR [TOTAL] checks what the committed subjobs wrote, without holding any table: the letter at a place of
# a block follows from the two numbers. Lines of a folder beyond its range do not count.
set -eu
out=${1:?usage: check.sh OUTPUT_DIR [TOTAL]}
total=${2:-320}
for folder in "$out"/*-*; do
	[ -d "$folder" ] || { echo "not ok: $out has no folder FROM-TO"; exit 1; }
	name=$(basename "$folder")
	cat "$folder"/values-* | awk -v from="${name%%-*}" -v to="${name##*-}" '$1 >= from + 0 && $1 < to + 0'
done | awk -v total="$total" '
	function letter(b, at) { return (at + b) % size % 26 + 1 }
	BEGIN { size = 851968 } # letters in a block
	{
		if (seen[$1]++) { print "not ok: unit " $1 " is committed twice"; bad = 1; exit 1 }
		u = $1; blocks = u < 200 ? 8 : u < 280 ? 40 : 96
		x = u + 1; value = 0
		for (i = 0; i < 200; i++) {
			x = (x * 48271) % 2147483647
			value = (value * 31 + letter(x % blocks % 26, int(x / 128) % size)) % 1000003
		}
		if (value != $2) { print "not ok: unit " u " has value " $2 ", want " value; bad = 1; exit 1 }
		n++
	}
	END {
		if (bad) exit 1
		if (n != total) { print "not ok: " n + 0 " of " total " units are there"; exit 1 }
		print "ok: " n " units, each once, every value right"
	}
'
