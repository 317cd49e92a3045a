#!/bin/sh
# make.sh FROM TO DIR makes the text files DIR/unit-NNNNNN for the units of [FROM, TO). Each depends on its number alone:
# a Lehmer generator (multiplier 48271, modulus 2^31-1) that stays exact in awk's floating point numbers.
set -eu
awk -v from="$1" -v to="$2" -v dir="$3" '
function draw(n) { x = (x * 48271) % 2147483647; return x % n }
BEGIN {
	for (u = from; u < to; u++) {
		x = (u * 7919 + 12345) % 2147483646 + 1
		file = sprintf("%s/unit-%06d", dir, u)
		lines = 5 + draw(10)
		for (l = 0; l < lines; l++) {
			line = ""
			for (words = 3 + draw(12); words > 0; words--) {
				word = ""
				for (letters = 1 + draw(9); letters > 0; letters--)
					word = word substr("abcdefghijklmnopqrstuvwxyz", 1 + draw(26), 1)
				line = line (line == "" ? "" : " ") word
			}
			print line > file
		}
		close(file)
	}
}'
