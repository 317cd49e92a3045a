#!/usr/bin/env bash
set -e -u -o pipefail
#
# The jobs of a Snakemake that has ended run on, and what it advises then has them write into the files of the next run's jobs. It is so
# after an interrupt, at which it says that it waits for them, and after a kill, whose lock is all that keeps the next run back.
#
# Version: Snakemake 7.21.0 as Debian 12 ships it (7.21.0-1): --cluster without --cluster-cancel, and jobs on the machine itself.
# Says:    "No --cluster-cancel given. Will exit after finishing currently running jobs." (at the interrupt), "To re-generate the
#          files rerun your command with the --rerun-incomplete flag." (at the next run), "If you are sure that no other instances of
#          snakemake are running on this directory, the remaining lock was likely caused by a kill signal or a power loss. It can be
#          removed with the --unlock argument." (after the kill)
# Does:    interrupted, it exits with 1 within seconds, and takes its lock along; killed, it leaves the lock. The job's shell runs on both
#          times, and nothing asks for it when its rule is started again: that run ends with 0, and the output has lines of two jobs.
# So:      give --cluster-cancel, which SIGTERM does not call, and before a rule is started again, and before --unlock, end what an earlier
#          run has left: by its process group, its control group, or by name.
# Output, seen on 2026-12-01:
#   SIGINT: No --cluster-cancel given. Will exit after finishing currently running jobs.
#   Snakemake: status 1, its job: running, locks: 0
#   the same command: status 1, IncompleteFilesException
#   --rerun-incomplete: status 0, out.txt: start 2, done 1, done 2
#   SIGKILL: status 137, out.txt: start 1
#   --rerun-incomplete: status 1, LockException
#   --unlock: status 0
#   --rerun-incomplete: status 0, out.txt: start 2, done 1, done 2
#
# Needs Debian 12 on amd64 and its package lists, and three minutes. Ends with 0 if that is still so, with 1 if it has changed.
dir=$(mktemp -d)
trap 'touch "$dir"/flow*/go1 "$dir"/flow*/go2; sleep 2; rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p deb/partial unpacked flow-interrupted flow-killed
apt-get -qq -y --no-install-recommends --download-only -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Dir::State::status=/dev/null \
	-o Dir::Cache::archives="$dir/deb" install snakemake=7.21.0-1 >/dev/null 2>&1
rm -f deb/libc6_*.deb
for deb in deb/*.deb; do dpkg -x "$deb" unpacked; done
lib=unpacked/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH="$dir/$lib:$dir/$lib/blas:$dir/$lib/lapack:$dir/unpacked/lib/x86_64-linux-gnu"
export PYTHONHOME="$dir/unpacked/usr" PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME="$dir"
cd flow-interrupted
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
how=(--cluster ./submit --cluster-status ./status)
run() { # starts Snakemake, as $snakemake
	"$dir/unpacked/usr/bin/python3.11" "$dir/unpacked/usr/bin/snakemake" -j 1 ${how[@]+"${how[@]}"} "$@" out.txt >said 2>&1 &
	snakemake=$!
}
ended() { status=0; wait "$snakemake" 2>/dev/null || status=$?; }
both() { # the rule again, beside its job of before
	run --rerun-incomplete
	await grep -q 'start 2' out.txt
	touch go1
	await grep -q 'done 1' out.txt
	touch go2
	ended
	seen="$seen--rerun-incomplete: status $status, out.txt: $(paste -s -d, out.txt | sed 's/,/, /g')
"
}

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
both

cd ../flow-killed
cp ../flow-interrupted/Snakefile .
echo 0 >n
how=()
run
await grep -q 'start 1' out.txt
kill -KILL "$snakemake"
ended
seen="${seen}SIGKILL: status $status, out.txt: $(cat out.txt)
"
run --rerun-incomplete
ended
seen="$seen--rerun-incomplete: status $status, $(grep -o LockException said)
"
run --unlock
ended
seen="$seen--unlock: status $status
"
both
want='SIGINT: No --cluster-cancel given. Will exit after finishing currently running jobs.
Snakemake: status 1, its job: running, locks: 0
the same command: status 1, IncompleteFilesException
--rerun-incomplete: status 0, out.txt: start 2, done 1, done 2
SIGKILL: status 137, out.txt: start 1
--rerun-incomplete: status 1, LockException
--unlock: status 0
--rerun-incomplete: status 0, out.txt: start 2, done 1, done 2
'
printf '%s' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s' "$want" >&2; exit 1; }
