#!/usr/bin/env bash
set -e -u -o pipefail
#
# The jobs of a Snakemake that was killed run on. Its lock, which the next run says to remove if no other Snakemake runs, is all that keeps
# that run's jobs from writing into the same files.
#
# Version: Snakemake 7.21.0 as Debian 12 ships it (7.21.0-1), jobs on the machine itself.
# Says:    "If you are sure that no other instances of snakemake are running on this directory, the remaining lock was likely caused by a
#          kill signal or a power loss. It can be removed with the --unlock argument."
# Does:    no other instance runs, but a job's shell of the killed one does. After --unlock the next run starts the same job beside it, and
#          ends with 0; the output has lines of both.
# So:      before --unlock end what the killed Snakemake had started: by its process group, its control group, or by name.
# Output, seen on 2026-12-01:
#   SIGKILL: status 137, out.txt: start 1
#   --rerun-incomplete: status 1, LockException
#   --unlock: status 0
#   --rerun-incomplete: status 0, out.txt: start 2, done 1, done 2
#
# Needs Debian 12 on amd64 and its package lists, and two minutes. Ends with 0 if that is still so, with 1 if it has changed.
dir=$(mktemp -d)
trap 'touch "$dir/work/go1" "$dir/work/go2"; sleep 2; rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p deb/partial unpacked work
apt-get -qq -y --no-install-recommends --download-only -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Dir::State::status=/dev/null \
	-o Dir::Cache::archives="$dir/deb" install snakemake=7.21.0-1 >/dev/null 2>&1
rm -f deb/libc6_*.deb
for deb in deb/*.deb; do dpkg -x "$deb" unpacked; done
lib=unpacked/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH="$dir/$lib:$dir/$lib/blas:$dir/$lib/lapack:$dir/unpacked/lib/x86_64-linux-gnu"
export PYTHONHOME="$dir/unpacked/usr" PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME="$dir"
cd work
await() { # waits for a command to succeed, for 90 s or a little more
	for _ in $(seq 450); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.2; done
	echo "it has changed, or this machine is too slow: never true: $*" >&2
	exit 1
}
cat > Snakefile <<'END'
rule one:
    output: "out.txt"
    shell:
        "n=$(($(cat n) + 1)); echo $n >n; echo start $n >{output}; until [ -e go$n ]; do sleep 0.1; done; echo done $n >>{output}"
END
echo 0 >n
run() { # starts Snakemake, as $snakemake
	"$dir/unpacked/usr/bin/python3.11" "$dir/unpacked/usr/bin/snakemake" -j 1 "$@" out.txt >said 2>&1 &
	snakemake=$!
}
ended() { status=0; wait "$snakemake" 2>/dev/null || status=$?; }

run
await grep -q 'start 1' out.txt
kill -KILL "$snakemake"
ended
seen="SIGKILL: status $status, out.txt: $(cat out.txt)
"
run --rerun-incomplete
ended
seen="$seen--rerun-incomplete: status $status, $(grep -o LockException said)
"
run --unlock
ended
seen="$seen--unlock: status $status
"
run --rerun-incomplete
await grep -q 'start 2' out.txt
touch go1
await grep -q 'done 1' out.txt
touch go2
ended
seen="$seen--rerun-incomplete: status $status, out.txt: $(paste -s -d, out.txt | sed 's/,/, /g')
"
want='SIGKILL: status 137, out.txt: start 1
--rerun-incomplete: status 1, LockException
--unlock: status 0
--rerun-incomplete: status 0, out.txt: start 2, done 1, done 2
'
printf '%s' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s' "$want" >&2; exit 1; }
