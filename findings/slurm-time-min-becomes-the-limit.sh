#!/usr/bin/env bash
set -e -u -o pipefail
#
# Slurm's backfill scheduler gives a job with --time-min that minimum as its limit, on an empty node too; its main scheduler never
# looks at --time-min.
#
# Version: Slurm 22.05.8 as Debian 12 ships it (22.05.8-4+deb12u3).
# Says:    "the job may have its --time limit lowered to a value no lower than --time-min if doing so permits the job to begin
#          execution earlier than otherwise possible" (sbatch(1)).
# Does:    backfill sets the limit to --time-min before it looks for a place (plugins/sched/backfill/backfill.c, line 2230), and
#          remembers that as the longest possible. `--time=60 --time-min=5` runs for 5 minutes where 60 are free, and where a
#          reservation leaves nearly 20. If the main scheduler comes first, the same command gets 60 on the empty node.
#          By Slurm's history that came with 20.02.5 and went with 25.05.3 ("incorrectly reset it to --time-min").
# So:      whoever fills a gap with --time-min gets the least that it can live with, or all, by luck of which scheduler comes first.
#          Ask for the length of the gap by --time.
# Output, seen on 2026-11-30:
#   --time=60 --time-min=5, empty node: Backfill 00:05:00, reservation in 20 minutes: Backfill 00:05:00
#   the same by the main scheduler, empty node: Main 01:00:00
#
# Needs Debian 12 on amd64 and its package lists, and 15 s. Ends with 0 if that is still so, with 1 if it has changed.
dir=$(mktemp -d)
pids=
trap 'timeout 5 scancel --me 2>/dev/null || true; sleep 1; kill $pids 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
v=22.05.8-4+deb12u3
apt-get -qq -o APT::Sandbox::User=root download "slurmctld=$v" "slurmd=$v" "slurm-client=$v" "slurm-wlm-basic-plugins=$v" \
	munge=0.5.15-2+deb12u1 libmunge2=0.5.15-2+deb12u1 libhwloc15=2.9.0-1 libnuma1=2.0.16-1 libreadline8=8.2-1.3
for deb in *.deb; do dpkg -x "$deb" .; done
for name in slurmctld slurmd slurmstepd; do ln -s "$name-wlm" "usr/sbin/$name"; done # as Debian's alternatives do
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu/slurm-wlm:$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
export PATH="$dir/usr/bin:$dir/usr/sbin:$PATH" SLURM_CONF="$dir/slurm.conf"
chmod 755 .
mkdir state spool
host=$(uname -n | cut -d. -f1)
port() { # prints a port that nothing listens on
	local p=$((20000 + RANDOM % 12000))
	while (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null; do p=$((p + 1)); done
	echo "$p"
}
await() { # waits for a command to succeed, for 90 s or a little more
	for _ in $(seq 450); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.2; done
	echo "it has changed, or this machine is too slow: never true: $*" >&2
	exit 1
}
cat > slurm.conf <<END
ClusterName=finding
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(port)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthInfo=socket=$dir/munge.socket
PluginDir=$dir/usr/lib/x86_64-linux-gnu/slurm-wlm
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=1,batch_sched_delay=60
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(port) CPUs=4
PartitionName=p Nodes=n1 Default=YES
END
(umask 077; head -c 1024 /dev/urandom >munge.key)
munged --force --foreground --socket="$dir/munge.socket" --key-file="$dir/munge.key" --pid-file="$dir/munge.pid" \
	--seed-file="$dir/munge.seed" --log-file="$dir/munge.log" 2>/dev/null &
pids=$!
await test -S munge.socket
slurmctld -D >slurmctld.log 2>&1 &
controller=$!
slurmd -D -N n1 -d "$dir/usr/sbin/slurmstepd" >slurmd.log 2>&1 &
pids="$pids $controller $!"
is() { [ "$(squeue -h -t all -j "$1" -o %T)" = "$2" ]; } # a job's id and state
idle() { [ "$(sinfo -h -o %T)" = idle ]; }
await idle
given() { # prints which scheduler started a job and the limit it has
	local id
	id=$(sbatch --parsable --output=/dev/null --time=60 --time-min=5 --wrap='sleep 300')
	await is "$id" RUNNING
	scontrol -o show job "$id" | sed -E 's/.* TimeLimit=([^ ]*) .* Scheduler=([^ ]*) .*/\2 \1/'
	scancel "$id"
	await idle
}
empty=$(given)
scontrol create reservation ReservationName=gap StartTime=now+20minutes Duration=60 Nodes=n1 Users="$(id -un)" >/dev/null
reserved=$(given)
scontrol delete ReservationName=gap
kill "$controller"
wait "$controller"
sed -i 's/^SchedulerParameters=.*/SchedulerParameters=bf_interval=600,batch_sched_delay=1/' slurm.conf
slurmctld -D >>slurmctld.log 2>&1 &
pids="$pids $!"
await idle
main=$(given)
seen="--time=60 --time-min=5, empty node: $empty, reservation in 20 minutes: $reserved
the same by the main scheduler, empty node: $main"
want='--time=60 --time-min=5, empty node: Backfill 00:05:00, reservation in 20 minutes: Backfill 00:05:00
the same by the main scheduler, empty node: Main 01:00:00'
printf '%s\n' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
