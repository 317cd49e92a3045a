#!/usr/bin/env bash
set -e -u -o pipefail
#
# Snakemake with --cluster, when it is interrupted, says that it exits after its running jobs, and exits before them. The next run, by what
# it advises, submits the same job beside the one that still runs, and takes the file that both wrote for whole.
#
# Version: Snakemake 7.21.0 as Debian 12 ships it (7.21.0-1), --cluster without --cluster-cancel.
# Says:    "No --cluster-cancel given. Will exit after finishing currently running jobs." (at the interrupt), "To re-generate the
#          files rerun your command with the --rerun-incomplete flag." (at the next run)
# Does:    it exits with 1 within seconds, and takes its lock along. The job runs on, and nothing asks for it when its rule is submitted
#          again: the run ends with 0, and the output has lines of two jobs.
# So:      Ctrl-C and the same command again can leave outputs that are mixed of two jobs. Give --cluster-cancel, which SIGTERM does not
#          call; and before an instance is submitted again end what an earlier run has left of it.
# Output, seen on 2026-12-01:
#   SIGINT: No --cluster-cancel given. Will exit after finishing currently running jobs.
#   Snakemake: status 1, its job: running, locks: 0
#   the same command: status 1, IncompleteFilesException
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
cat > submit <<'END'
#!/bin/sh
for script; do :; done # the last argument
setsid sh -c 'sh "$0"; echo $? >ended.$$' "$script" >said.job 2>&1 </dev/null &
echo $!
END
cat > status <<'END'
#!/bin/sh
case $(cat "ended.$1" 2>/dev/null) in '') echo running ;; 0) echo success ;; *) echo failed ;; esac
END
chmod +x submit status
set -m # so that what runs in the background hears SIGINT
run() { # starts Snakemake, as $snakemake
	"$dir/unpacked/usr/bin/python3.11" "$dir/unpacked/usr/bin/snakemake" -j 1 --cluster ./submit --cluster-status ./status "$@" out.txt \
		>said 2>&1 &
	snakemake=$!
}
ended() { status=0; wait "$snakemake" || status=$?; }

run
await grep -q 'start 1' out.txt
await grep -q 'Submitted job' said
kill -INT "$snakemake"
ended
seen="SIGINT: $(grep -- --cluster-cancel said)
Snakemake: status $status, its job: $(cat ended.* 2>/dev/null || echo running), locks: $(find .snakemake/locks -type f | wc -l)
"
run
ended
seen="${seen}the same command: status $status, $(grep -o IncompleteFilesException said)
"
run --rerun-incomplete
await grep -q 'start 2' out.txt
touch go1
await grep -q 'done 1' out.txt
touch go2
ended
seen="$seen--rerun-incomplete: status $status, out.txt: $(paste -s -d, out.txt | sed 's/,/, /g')
"
want='SIGINT: No --cluster-cancel given. Will exit after finishing currently running jobs.
Snakemake: status 1, its job: running, locks: 0
the same command: status 1, IncompleteFilesException
--rerun-incomplete: status 0, out.txt: start 2, done 1, done 2
'
printf '%s' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s' "$want" >&2; exit 1; }
