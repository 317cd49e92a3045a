#!/usr/bin/env bash
# make demo: the four examples run twice on four simulated slices with the same maintenance ahead, first cut to fit the
# windows, then as rigid blocks. Each result is checked; then both timelines are drawn, one below the other.
# PORT names the first of two ports on loopback. Everything is kept under .demo.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/bin:$PATH"
gpus='sim:custom,mem=160Mi+96Mi+64Mi+64Mi'
port=${PORT:-7191}
daemon=
stop() {
	[ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" || true; }
	daemon=
}
trap stop EXIT

# with NAME JOBFILE: runs the jobs of one file from an empty daemon to the end, and keeps the history.
with() {
	local data=.demo/$1 from=$SECONDS slices names slice
	rm -rf "$data" && mkdir -p "$data"
	export SLUICE_SERVER=127.0.0.1:$port
	port=$((port + 1))
	sluice up --data "$data/data" --listen "$SLUICE_SERVER" --gpus "$gpus" --horizon 5m >"$data/log" 2>&1 &
	daemon=$!
	until slices=$(sluice slices -o name 2>/dev/null) && [ -n "$slices" ]; do
		kill -0 "$daemon" 2>/dev/null || { echo "the daemon did not start:" && tail -n 20 "$data/log" && exit 1; } >&2
		[ $((SECONDS - from)) -lt 30 ] || { echo "no slices after 30 s; see $data/log" >&2 && exit 1; }
		sleep 0.1
	done
	for slice in $(grep 64Mi <<<"$slices"); do
		sluice reserve "$slice" --kind maintenance --start 20s --for 15s >/dev/null
	done
	echo "== $1: examples/demo/$1.yaml, maintenance on two slices from 20 s to 35 s"
	names=$(awk -F '[:}] *' '/^metadata:/ { print $3 }' "examples/demo/$1.yaml")
	# shellcheck disable=SC2086 # one word for each job
	sluice submit "examples/demo/$1.yaml" >/dev/null && sluice wait $names --timeout 4m >/dev/null || {
		sluice jobs
		echo "not every job completed; see $data/log" >&2
		exit 1
	}
	go run ./examples/demo/picture fetch "$SLUICE_SERVER" >"$data/history.json"
	sluice jobs
	echo "   done in about $((SECONDS - from)) s"
	stop
}

with atoms
out=.demo/atoms/data/output
for example in items:count-words steps:train rigid:big-sort growing:growing; do
	printf '   %-12s' "${example#*:}"
	"examples/${example%%:*}/check.sh" "$out/${example#*:}"
done

with blocks
out=$PWD/.demo/blocks/data/output
# A block's folder is called after the range of its job, which is one unit; the checks want that of the work.
place() { mkdir -p ".demo/blocks/$1" && ln -s "$out/$2"/*-* ".demo/blocks/$1/$3"; }
for i in 1 2 3 4; do place words "count-words-$i" "$((i * 2500 - 2500))-$((i * 2500))"; done
place train train 0-4000
place growing growing 0-320
for example in items:words steps:train growing:growing; do
	printf '   %-12s' "${example#*:}"
	"examples/${example%%:*}/check.sh" ".demo/blocks/${example#*:}"
done
printf '   %-12s' big-sort
examples/rigid/check.sh "$out/big-sort"

echo
go run ./examples/demo/picture draw .demo/demo.svg 'Cut to fit the windows=.demo/atoms/history.json' 'Rigid blocks=.demo/blocks/history.json'
echo "the same as a picture: .demo/demo.svg"
