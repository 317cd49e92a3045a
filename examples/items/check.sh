#!/bin/sh
# check.sh OUTPUT_DIR [TOTAL] checks what the committed subjobs wrote: OUTPUT_DIR has a folder FROM-TO for each of them.
# Every unit must be committed exactly once, and every line must equal that of a whole run over all files at once.
# Lines of a folder beyond its range do not count: the subjob was ended after it wrote them and before it said so.
set -eu
out=${1:?usage: check.sh OUTPUT_DIR [TOTAL]}
total=${2:-10000}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sh "$here/make.sh" 0 "$total" "$work"
(
	cd "$work"
	find . -name 'unit-*' | sort | xargs cat -- | wc -w >words
	find . -name 'unit-*' | sort | xargs cksum | awk '{ sub("./unit-0*", "", $3); print $3 + 0, $1 }' >want
)

for folder in "$out"/*-*; do
	[ -d "$folder" ] || { echo "not ok: $out has no folder FROM-TO"; exit 1; }
	name=$(basename "$folder")
	cat "$folder"/counts-* | awk -v from="${name%%-*}" -v to="${name##*-}" '$1 >= from + 0 && $1 < to + 0'
done >"$work/got"

sort -n "$work/got" | awk -v total="$total" -v words="$(cat "$work/words")" '
	FILENAME != "-" { want[$1] = $2; next }
	seen[$1]++ { print "not ok: unit " $1 " is committed twice"; bad = 1; exit 1 }
	want[$1] != $3 { print "not ok: unit " $1 " has checksum " $3 ", want " want[$1]; bad = 1; exit 1 }
	{ n++; sum += $2 }
	END {
		if (bad) exit 1
		if (n != total) { print "not ok: " n + 0 " of " total " units are there"; exit 1 }
		if (sum != words) { print "not ok: " sum " words, want " words; exit 1 }
		print "ok: " n " units, each once, " sum " words, every checksum as in a whole run"
	}
' "$work/want" -
