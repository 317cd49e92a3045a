#!/bin/sh
# Sorts the numbers 1 to 5,999,992 with a radix sort: seven passes, each a stable sort by one digit. It is of no use before the
# last pass is done, keeps nothing in between, and so needs its whole time at once: a rigid job.
# The numbers come shuffled: the powers of a primitive root modulo a prime, so that each comes exactly once. PRIME
# and ROOT choose others, PACE rests for so many seconds after each pass.
set -eu
export LC_ALL=C
work=$(mktemp -d "$PWD/sort.XXXXXX") # in the work directory, which is the subjob's own and goes with it
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM

awk -v p="${PRIME:-5999993}" -v g="${ROOT:-1000}" 'BEGIN { x = 1; do { printf "%07d\n", x; x = (x * g) % p } while (x != 1) }' >"$work/numbers"
for digit in 7 6 5 4 3 2 1; do
	sort -s -k "1.$digit,1.$digit" -S 24M --parallel=1 -T "$work" -o "$work/sorted" "$work/numbers"
	mv "$work/sorted" "$work/numbers"
	sleep "${PACE:-0}" # stands for time on the device
done

# The result: how many, the checksum of all, and every 10,000th.
{
	cksum <"$work/numbers"
	awk 'NR % 10000 == 0' "$work/numbers"
} >"$SLUICE_OUTPUT_DIR/sorted.part"
mv "$SLUICE_OUTPUT_DIR/sorted.part" "$SLUICE_OUTPUT_DIR/sorted"
