#!/usr/bin/env bash
set -e -u -o pipefail
#
# `scontrol update JobId=... Priority=...` by a job's owner ends with 1 and an error, and has lowered the priority, for good.
#
# Version: Slurm 22.05.8 as Debian 12 ships it (22.05.8-4+deb12u3).
# Says:    "Set the job's priority to the specified value ... Only the Slurm administrator or root can increase job's priority"
#          (scontrol(1)).
# Does:    the controller takes the new value, and what else the command asks for, and answers ESLURM_PRIO_RESET_FAIL ("Changes to job
#          priority are not persistent, change nice instead", slurmctld/job_mgr.c, line 13541; the branch 25.11 still has that line).
#          Raising the priority again is denied.
# So:      who takes the exit status for a failure, tries again or goes on as before, has given the job's place away. Nice= is the
#          way that answers with 0.
# Output, seen on 2026-11-30:
#   queue: 2 3
#   scontrol update JobId=2 Priority=100 TimeLimit=20: rc 1, says Changes to job priority are not persistent, change nice instead for job 2
#   priority 100, limit 20:00, queue: 3 2
#   scontrol update JobId=2 Priority=101: rc 1, says Access/permission denied for job 2
#   scontrol update JobId=3 Nice=50: rc 0, says nothing
#
# Needs root, Debian 12 on amd64 and its package lists, and 10 s. Ends with 0 if that is still so, with 1 if it has changed.
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
owner() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; } # runs a command as nobody, who is no administrator
answer() { # runs a command as the owner; prints it, its exit status, and what it says on either stream
	local said rc=0
	said=$(owner "$@" 2>&1) || rc=$?
	echo "$*: rc $rc, says ${said:-nothing}"
}
queue() { squeue -h -t PD -S -p -o %i | tr '\n' ' ' | sed 's/ $//'; }
busy=$(sbatch --parsable --output=/dev/null --cpus-per-task=4 --wrap='sleep 300')
await is "$busy" RUNNING
for _ in 1 2; do owner sbatch --parsable --output=/dev/null --chdir=/ --time=30 --wrap=true >/dev/null; done
seen="queue: $(queue)
$(answer scontrol update JobId=2 Priority=100 TimeLimit=20)
$(squeue -h -j 2 -o 'priority %Q, limit %l'), queue: $(queue)
$(answer scontrol update JobId=2 Priority=101)
$(answer scontrol update JobId=3 Nice=50)"
want='queue: 2 3
scontrol update JobId=2 Priority=100 TimeLimit=20: rc 1, says Changes to job priority are not persistent, change nice instead for job 2
priority 100, limit 20:00, queue: 3 2
scontrol update JobId=2 Priority=101: rc 1, says Access/permission denied for job 2
scontrol update JobId=3 Nice=50: rc 0, says nothing'
printf '%s\n' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
