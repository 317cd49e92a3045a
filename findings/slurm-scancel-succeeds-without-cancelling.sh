#!/usr/bin/env bash
set -e -u -o pipefail
#
# scancel ends with 0 and says nothing where it has cancelled nothing: the id is unknown, the job is over, or the name that guards the
# cancellation is another's.
#
# Version: Slurm 22.05.8 as Debian 12 ships it (22.05.8-4+deb12u3).
# Says:    "-Q, --quiet: Do not report an error if the specified job is already completed", and "--name: Restrict the scancel operation
#          to jobs with this job name" (scancel(1)); the page says nothing of exit statuses.
# Does:    without a filter the controller's "Invalid job id" and "already completed" are dropped, without -Q as well (scancel/scancel.c,
#          line 783). With a filter the queue is looked through first: an id that is unknown or over is an error, and a job that the
#          filter leaves out is none; only -v says "No active jobs match ALL job filters".
# So:      0 does not mean that the job is cancelled or over: a wrong id and another's job look the same. Ask squeue afterwards.
# Output, seen on 2026-11-30:
#   scancel 1, completed: rc 0, says nothing
#   scancel --name=other 2, pending: rc 0, says nothing; 2 is PENDING
#   scancel 999, unknown: rc 0, says nothing
#   scancel --name=other 999, unknown: rc 1, says scancel: error: Kill job error on job id 999: Invalid job id specified
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
answer() { # runs a command; prints its exit status, and what it says on either stream
	local said rc=0
	said=$("$@" 2>&1) || rc=$?
	echo "rc $rc, says ${said:-nothing}"
}
done=$(sbatch --parsable --output=/dev/null --wrap=true)
await is "$done" COMPLETED
mine=$(sbatch --parsable --output=/dev/null --hold --job-name=mine --wrap=true)
seen="scancel $done, completed: $(answer scancel "$done")
scancel --name=other $mine, pending: $(answer scancel --name=other "$mine"); $mine is $(squeue -h -j "$mine" -o %T)
scancel 999, unknown: $(answer scancel 999)
scancel --name=other 999, unknown: $(answer scancel --name=other 999)"
want='scancel 1, completed: rc 0, says nothing
scancel --name=other 2, pending: rc 0, says nothing; 2 is PENDING
scancel 999, unknown: rc 0, says nothing
scancel --name=other 999, unknown: rc 1, says scancel: error: Kill job error on job id 999: Invalid job id specified'
printf '%s\n' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
