#!/usr/bin/env bash
set -e -u -o pipefail
#
# A killed slurmctld forgets what it had acknowledged: it gives the id of an accepted job to the next one, and a cancelled pending job
# is pending again.
#
# Version: Slurm 22.05.8 as Debian 12 ships it (22.05.8-4+deb12u3).
# Says:    "Slurm state will saved here to recover from system failures ... all running and pending job information is stored here"
#          (slurm.conf(5), StateSaveLocation); no page says how late it is stored.
# Does:    a submission only asks for the state to be written, which happens at most every 5 s (SAVE_MAX_WAIT, slurmctld/state_save.c),
#          the next id with it. The cancellation of a pending job does not even ask: it is written with the next change of something
#          else, or within 5 minutes.
# So:      a job id is not an identity, and the cancelled may run. Name each job with something random of one's own, look jobs up by
#          that before one cancels or counts, and cancel again what comes back.
# Output, seen on 2026-11-30:
#   sbatch said 2, slurmctld was killed, the next sbatch said 2; 2 is now called second
#   cancelled 3, 10 s later slurmctld was killed: 3 is PENDING
#
# Needs Debian 12 on amd64 and its package lists, and half a minute. Ends with 0 if that is still so, with 1 if it has changed.
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
held() { sbatch --parsable --output=/dev/null --hold --job-name="$1" --wrap=true; } # prints the id
restart() { # kills slurmctld, as the kernel does where memory is short, and starts it again
	kill -9 "$controller"
	wait "$controller" 2>/dev/null || true
	slurmctld -D >>slurmctld.log 2>&1 &
	controller=$!
	pids="$pids $controller"
	await squeue
}
sleep 6 # nothing is left to be written from the start
held other >/dev/null # is written at once; what follows, not before 5 s have passed
sleep 1
first=$(held first)
restart
second=$(held second)
cancelled=$(held cancelled)
sleep 10 # all is written
scancel "$cancelled"
await is "$cancelled" CANCELLED
sleep 10
restart
seen="sbatch said $first, slurmctld was killed, the next sbatch said $second; $first is now called $(squeue -h -j "$first" -o %j)
cancelled $cancelled, 10 s later slurmctld was killed: $cancelled is $(squeue -h -t all -j "$cancelled" -o %T)"
want='sbatch said 2, slurmctld was killed, the next sbatch said 2; 2 is now called second
cancelled 3, 10 s later slurmctld was killed: 3 is PENDING'
printf '%s\n' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
