#!/bin/sh
# A job whose memory grows as it goes: unit u walks over a table of 8, 40 or 96 blocks, and really holds them. Subjobs hold
# only what the units of their own part need, so that a small slice can run the first part and never the last.
# Needs only sh, coreutils and awk. Writes one line "unit value" for each unit of [SLUICE_FROM, SLUICE_TO).
set -eu
stop=
trap 'stop=yes' TERM

# walk FROM TO does the work. Progress is reported after each unit, and after its line is written.
walk() {
	exec awk -v from="$1" -v to="$2" -v pace="${PACE:-0}" -v out="$SLUICE_OUTPUT_DIR/values-$1" -v progress="$SLUICE_PROGRESS_FILE" '
	# blocks that a unit needs: the phases of job.yaml
	function need(u) { return u < 400 ? 8 : u < 600 ? 40 : 96 }
	# hold n blocks of 832 KiB; block b is the alphabet over and over, turned by b letters
	function hold(n) {
		for (; held < n; held++)
			block[held] = substr(base, held % 26 + 1) substr(base, 1, held % 26)
	}
	BEGIN {
		held = 0
		base = "abcdefghijklmnopqrstuvwxyz"
		while (length(base) < 851968) base = base base
		for (u = from; u < to; u++) {
			hold(need(u))
			# 200 letters at places that depend on the unit, folded into one number
			x = u % 2147483646 + 1; value = 0
			for (i = 0; i < 200; i++) {
				x = (x * 48271) % 2147483647
				b = x % need(u); at = int(x / 128) % length(base)
				value = (value * 31 + index("abcdefghijklmnopqrstuvwxyz", substr(block[b], at + 1, 1))) % 1000003
			}
			print u, value >> out
			close(out)
			printf "{\"progress\": %d, \"checkpoint\": false}\n", u + 1 > (progress ".new")
			close(progress ".new")
			if (system("mv " progress ".new " progress (pace > 0 ? " && sleep " pace : "")) != 0) exit 1
		}
	}'
}

(walk "$SLUICE_FROM" "$SLUICE_TO") && exit 0
[ -z "$stop" ] || exit 85 # ended by the signal at the deadline; what was reported counts
exit 1
