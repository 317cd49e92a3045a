#!/usr/bin/env bash
set -e -u -o pipefail
#
# While the GraceTime of a job that it preempted runs, Slurm preempts no other for the same waiting job, also when the preempted one has
# ended long ago and its node is not to be had any more.
#
# Version: Slurm 22.05.8 as Debian 12 ships it (22.05.8-4+deb12u3).
# Says:    GraceTime "specifies, in units of seconds, the preemption grace time to be extended to a job which has been selected for
#          preemption" (slurm.conf(5)); of who waits for it the page says nothing.
# Does:    a job that preempts makes slurmctld wait for its victims until their grace is over. A victim that heeds its notice and ends at
#          once frees its node; if that goes to somebody else first, or is drained, the waiting job shows another node as its next
#          (SchedNodeList) with a start of now, and the job there is left alone for the rest of the grace. With the same node out of
#          service from the beginning it takes the other at once.
# So:      to end early does not always help who waits. Whoever lends nodes under a grace should look at jobs that are to start now on a
#          node of its own and do not, and give that back unasked; a site with short graces has the shorter waits.
# Output, seen on 2026-11-30:
#   one node drained before: the job on the other is preempted within 10 s
#   drained when its job had ended early: the job on the other is preempted after the 40 s of grace
#
# Needs Debian 12 on amd64 and its package lists, and two minutes. Ends with 0 if that is still so, with 1 if it has changed.
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
mkdir -p state spool/n1 spool/n2
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
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=2,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(port) CPUs=1
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(port) CPUs=1
PartitionName=low Nodes=n[1-2] PriorityTier=1 PreemptMode=CANCEL GraceTime=40
PartitionName=urgent Nodes=n[1-2] PriorityTier=2 PreemptMode=OFF
END
(umask 077; head -c 1024 /dev/urandom >munge.key)
munged --force --foreground --socket="$dir/munge.socket" --key-file="$dir/munge.key" --pid-file="$dir/munge.pid" \
	--seed-file="$dir/munge.seed" --log-file="$dir/munge.log" 2>/dev/null &
pids=$!
await test -S munge.socket
slurmctld -D >slurmctld.log 2>&1 &
controller=$!
pids="$pids $controller"
for node in n1 n2; do
	slurmd -D -N $node -d "$dir/usr/sbin/slurmstepd" >slurmd-$node.log 2>&1 &
	pids="$pids $!"
done
idle() { [ "$(sinfo -h -N -p urgent -o %T | sort -u)" = idle ]; }
runs() { [ "$(squeue -h -j "$1" -o %T)" = RUNNING ]; }    # a job's id
taken() { scontrol -o show job "$1" | grep -q 'PreemptTime=2'; }
over() { [ -z "$(squeue -h -j "$1" -t R,CG,PD -o %i 2>/dev/null)" ]; }
low() { sbatch --parsable -o /dev/null -p low -t 30 -w "$1" --wrap 'exec sleep 600'; } # node; prints the id
urgent() { sbatch --parsable -o /dev/null -p urgent -t 10 --wrap 'exec sleep 600'; }
drain() { scontrol update node="$1" state=drain reason=finding; }
when() { # the second of SECONDS in which a job is preempted; prints how long after $2 that is
	await taken "$1"
	local after=$((SECONDS - $2))
	if [ $after -le 10 ]; then echo 'within 10 s'; elif [ $after -ge 38 ]; then echo 'after the 40 s of grace'; else echo "after $after s"; fi
}
await idle
first=$(low n1) second=$(low n2)
await runs "$first"
await runs "$second"
scancel "$first"
await over "$first"
drain n1
begin=$SECONDS
urgent=$(urgent)
seen="one node drained before: the job on the other is preempted $(when "$second" "$begin")"
scancel "$second" "$urgent"
await over "$second"
await over "$urgent"
scontrol update node=n1 state=resume
await idle

first=$(low n1) second=$(low n2)
await runs "$first"
await runs "$second"
begin=$SECONDS
urgent=$(urgent)
victim=
for _ in $(seq 300); do
	if taken "$first"; then victim=$first other=$second node=n1; fi
	if taken "$second"; then victim=$second other=$first node=n2; fi
	[ -z "$victim" ] || break
	sleep 0.2
done
drain "$node" # before the victim is gone, so that nobody begins there
scancel "$victim"
await over "$victim"
seen="$seen
drained when its job had ended early: the job on the other is preempted $(when "$other" "$begin")"
want='one node drained before: the job on the other is preempted within 10 s
drained when its job had ended early: the job on the other is preempted after the 40 s of grace'
printf '%s\n' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
