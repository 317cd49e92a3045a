#!/usr/bin/env bash
set -e -u -o pipefail
#
# Debian's slurmctld-wlm, started by that name, takes every Gres out of slurm.conf without a word: the nodes have no GPU.
#
# Version: Slurm 22.05.8 as Debian 12 ships it (22.05.8-4+deb12u3).
# Says:    Gres is "a comma-delimited list of generic resources specifications for a node" (slurm.conf(5)). Debian's packages hold
#          /usr/sbin/slurmctld-wlm, slurmd-wlm and slurmstepd-wlm; slurmctld, slurmd and slurmstepd are links that the packages' install
#          scripts make (update-alternatives).
# Does:    the daemons look at the name that they were started by, and only "slurmctld" and "slurmd" read a node's Gres
#          (common/node_conf.c, line 394). The controller logs nothing of it; slurmd-wlm warns of "1 more configured than expected
#          in slurm.conf".
# So:      packages unpacked instead of installed, as in a test without root or in an image built by hand, make a cluster that runs and
#          has no GPU. Make the links.
# Output, seen on 2026-11-30:
#   slurmctld and slurmd: Gres gpu:1; sbatch --gres=gpu:1: Submitted batch job 1
#   slurmctld-wlm and slurmd-wlm: Gres (null); sbatch --gres=gpu:1: sbatch: error: Batch job submission failed: Requested node
#   configuration is not available; lines on gres in the controller's log: 0
#
# Needs Debian 12 on amd64 and its package lists, and 10 s. Ends with 0 if that is still so, with 1 if it has changed.
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
GresTypes=gpu
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(port) CPUs=4 Gres=gpu:1
PartitionName=p Nodes=n1 Default=YES
END
(umask 077; head -c 1024 /dev/urandom >munge.key)
munged --force --foreground --socket="$dir/munge.socket" --key-file="$dir/munge.key" --pid-file="$dir/munge.pid" \
	--seed-file="$dir/munge.seed" --log-file="$dir/munge.log" 2>/dev/null &
pids=$!
await test -S munge.socket
echo 'NodeName=n1 Name=gpu File=/dev/null' >gres.conf
idle() { [ "$(sinfo -h -o %T)" = idle ]; }
daemons() { # starts both, by their names with what is given added
	rm -rf state spool
	mkdir state spool
	"slurmctld$1" -D >slurmctld.log 2>&1 &
	controller=$!
	"slurmd$1" -D -N n1 -d "$dir/usr/sbin/slurmstepd$1" >slurmd.log 2>&1 &
	node=$!
	pids="$pids $controller $node"
	await idle
}
shown() { # prints the Gres of the node, and what a job that wants one is told
	echo "Gres $(sinfo -h -o %G); sbatch --gres=gpu:1: $(sbatch --output=/dev/null --gres=gpu:1 --wrap=true 2>&1)"
}
daemons ''
seen="slurmctld and slurmd: $(shown)"
kill "$controller" "$node"
wait "$controller" "$node" || true
daemons -wlm
seen="$seen
slurmctld-wlm and slurmd-wlm: $(shown)"
seen="$seen; lines on gres in the controller's log: $(grep -ci gres slurmctld.log || true)"
want="slurmctld and slurmd: Gres gpu:1; sbatch --gres=gpu:1: Submitted batch job 1
slurmctld-wlm and slurmd-wlm: Gres (null); sbatch --gres=gpu:1: sbatch: error: Batch job submission failed: Requested node configuration \
is not available; lines on gres in the controller's log: 0"
printf '%s\n' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
