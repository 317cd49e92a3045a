#!/usr/bin/env bash
# Run the benchmarks into .tmp/bench and say how to compare them with bench/baseline; with "baseline" as the first argument
# the results become the new baseline. COUNT is how often each Go benchmark runs, PAIRS how often the live ones do.
# docs/benchmarks.md explains the figures. The largest sizes, which take minutes to set up, run with LARGE=1 only.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}" "${COUNT:=6}" "${PAIRS:=5}" "${LARGE:=}"
out=.tmp/bench
mkdir -p "$out"
size=-short
[ -z "$LARGE" ] || size='-timeout 0'

# What benchstat does not know is a comment to it, so that two runs are compared whatever the day and the commit.
header() {
	echo "# machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2/1048576}' /proc/meminfo)"
	echo "# system: $(. /etc/os-release && echo "$PRETTY_NAME"), Linux $(uname -r), $($GO version | cut -d' ' -f3)"
	echo "# date: $(date -u +%F), commit: $(git describe --always --dirty --exclude '*')"
	echo "# load before: $(cut -d' ' -f1-3 /proc/loadavg)"
}

# The packages one by one: two benchmarks at once would measure each other.
{
	header
	$GO list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}} {{.ImportPath}}{{end}}' ./... | while read -r dir path; do
		grep -lqs '^func Benchmark' "$dir"/*_test.go || continue
		$GO test -run '^$' -bench . -benchtime 0.1s -count "$COUNT" -benchmem $size "$path"
	done
} | tee "$out/go.txt"
{
	header
	$GO run ./bench/live -bin bin -pairs "$PAIRS"
} | tee "$out/live.txt"

if [ "${1:-}" = baseline ]; then
	mkdir -p bench/baseline
	cp "$out/go.txt" "$out/live.txt" bench/baseline/
	echo "written: bench/baseline/go.txt and live.txt; say in the commit why the old ones no longer hold"
	exit
fi
echo "
To compare with the baseline (which holds for its own machine only):
  go install golang.org/x/perf/cmd/benchstat@latest
  benchstat bench/baseline/go.txt $out/go.txt
  benchstat bench/baseline/live.txt $out/live.txt"
