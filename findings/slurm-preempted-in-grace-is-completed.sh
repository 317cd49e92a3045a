#!/usr/bin/env bash
set -e -u -o pipefail
#
# A preempted Slurm job that ends by itself within its GraceTime is COMPLETED or FAILED by its exit status, as if nothing had happened,
# and is not requeued; a moment later the same exit is PREEMPTED, or requeued.
#
# Version: Slurm 22.05.8 as Debian 12 ships it (22.05.8-4+deb12u3).
# Says:    PREEMPTED is "Job terminated due to preemption" (squeue(1)); PreemptMode=REQUEUE "preempts jobs by requeuing them (if
#          possible) or canceling them" (slurm.conf(5)).
# Does:    the job's state becomes PREEMPTED, or the job is requeued, only when the grace is over and slurmctld comes by on its tick of
#          30 s. Who stops at the notice (the user signal here; a step's TERM is the same notice) is COMPLETED 0:0 before that, in
#          either mode. From the tick on the exit status does not matter: exit 0 in the TERM trap is PREEMPTED or PENDING. What tells
#          an early end from a regular one is PreemptTime in `scontrol show job`, until the record is dropped (MinJobAge).
# So:      a job that uses its grace to save and stop is lost where it counted on the requeue, and counts as done where its owner goes
#          by the state. Say in the job's own words whether work is left, and submit again.
# Output, seen on 2026-11-30:
#   PreemptMode=CANCEL: exit 0 at the notice COMPLETED 0:0 PreemptTime set, exit 0 at the TERM after the grace PREEMPTED 0:0
#   PreemptMode=CANCEL: exit 3 at the notice FAILED 3:0 PreemptTime set, exit 3 at the TERM after the grace PREEMPTED 3:0
#   PreemptMode=REQUEUE: exit 0 at the notice COMPLETED 0:0 PreemptTime set, exit 0 at the TERM after the grace PENDING 0:0
#   PreemptMode=REQUEUE: exit 3 at the notice FAILED 3:0 PreemptTime set, exit 3 at the TERM after the grace PENDING 0:0
#
# Needs Debian 12 on amd64 and its package lists, and a minute. Ends with 0 if that is still so, with 1 if it has changed.
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
SchedulerParameters=bf_interval=5
SlurmctldParameters=preempt_send_user_signal
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(port) CPUs=8
PartitionName=cancel Nodes=n1 PriorityTier=1 PreemptMode=CANCEL GraceTime=15
PartitionName=requeue Nodes=n1 PriorityTier=1 PreemptMode=REQUEUE GraceTime=15
PartitionName=urgent Nodes=n1 PriorityTier=2 PreemptMode=OFF
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
idle() { [ "$(sinfo -h -p urgent -o %T)" = idle ]; }
await idle
cat > job <<'END'
#!/bin/bash
trap 'exit $2' $1
[ "$1" = USR1 ] || trap : USR1
: >"ready.$SLURM_JOB_ID"
while :; do sleep 0.2 & wait; done
END
submit() { # partition, the signal that ends the job, the exit status that it then has; prints the id
	sbatch --parsable --output=/dev/null --partition="$1" --time=30 --signal=B:USR1@60 job "$2" "$3"
}
shown() { # a job's state and exit status
	scontrol -o show job "$1" | sed -E 's/.* JobState=([^ ]*) .* ExitCode=([^ ]*) .*/\1 \2/'
}
marked() { # the same, and whether it is known to have been preempted
	local word=unset
	if scontrol -o show job "$1" | grep -q 'PreemptTime=2'; then word=set; fi
	echo "$(shown "$1") PreemptTime $word"
}
ready() { [ "$(find . -maxdepth 1 -name 'ready.*' | wc -l)" = "$1" ]; } # as many jobs have set their traps
jobs=()
for mode in cancel requeue; do
	for status in 0 3; do jobs+=("$(submit $mode USR1 $status)" "$(submit $mode TERM $status)"); done
done
await ready 8
urgent=$(sbatch --parsable --output=/dev/null --partition=urgent --cpus-per-task=8 --wrap='sleep 300')
await is "$urgent" RUNNING
line() { # status, the job that ends at the notice, the job that ends at the TERM
	echo "exit $1 at the notice $(marked "$2"), exit $1 at the TERM after the grace $(shown "$3")"
}
seen="PreemptMode=CANCEL: $(line 0 "${jobs[0]}" "${jobs[1]}")
PreemptMode=CANCEL: $(line 3 "${jobs[2]}" "${jobs[3]}")
PreemptMode=REQUEUE: $(line 0 "${jobs[4]}" "${jobs[5]}")
PreemptMode=REQUEUE: $(line 3 "${jobs[6]}" "${jobs[7]}")"
want='PreemptMode=CANCEL: exit 0 at the notice COMPLETED 0:0 PreemptTime set, exit 0 at the TERM after the grace PREEMPTED 0:0
PreemptMode=CANCEL: exit 3 at the notice FAILED 3:0 PreemptTime set, exit 3 at the TERM after the grace PREEMPTED 3:0
PreemptMode=REQUEUE: exit 0 at the notice COMPLETED 0:0 PreemptTime set, exit 0 at the TERM after the grace PENDING 0:0
PreemptMode=REQUEUE: exit 3 at the notice FAILED 3:0 PreemptTime set, exit 3 at the TERM after the grace PENDING 0:0'
printf '%s\n' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
