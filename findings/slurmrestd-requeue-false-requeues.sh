#!/usr/bin/env bash
set -e -u -o pipefail
#
# "requeue": false in a job that slurmrestd submits makes one that is requeued, also where jobs otherwise are not.
#
# Version: slurmrestd of Slurm 22.05.8 as Debian 12 ships it (22.05.8-4+deb12u3), openapi/v0.0.38.
# Says:    requeue is a boolean: "Specifies that the batch job should eligible to being requeue" (GET /openapi/v3,
#          v0.0.38_job_properties). no_requeue is not among the keys.
# Does:    that the key is there is enough, its value is not looked at (arg_set_data_requeue, common/slurm_opt.c, line 3884). The same
#          is true of oversubscribe and spread_job, which are booleans, too. no_requeue works, and is marked as "not in OAS"
#          (plugins/openapi/v0.0.38/jobs.c, line 182).
# So:      where JobRequeue is 1, the default, a client that is generated from the description can't ask for a job that is not begun
#          again, and one that sends false for what it does not want gets it. Leave these keys out, or send "no_requeue": true; then
#          read what the job has.
# Output, seen on 2026-11-30:
#   described: requeue, oversubscribe, spread_job, no_requeue: boolean, boolean, boolean, not listed
#   JobRequeue=1: {} Requeue=1, {"requeue":false} Requeue=1, {"no_requeue":true} Requeue=0
#   scontrol requeue: {"requeue":false} rc 0, says nothing; Restarts=1
#   scontrol requeue: {"no_requeue":true} rc 1, says Requested operation is presently disabled for job 5; Restarts=0
#   {} OverSubscribe=OK, {"oversubscribe":false} OverSubscribe=YES
#   {} no SpreadJob, {"spread_job":false} SpreadJob=Yes
#   JobRequeue=0: {} Requeue=0, {"requeue":false} Requeue=1
#
# Needs Debian 12 on amd64 and its package lists, curl, jq, and 15 s. Ends with 0 if that is still so, with 1 if it has changed.
user=$(id -un)
as=
if [ "$user" = root ]; then user=nobody as='setpriv --reuid=nobody --regid=nogroup --clear-groups'; fi # slurmrestd does not run as root
dir=$(mktemp -d)
pids=
trap 'timeout 5 scancel --user="$user" 2>/dev/null || true; sleep 1; kill $pids 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
v=22.05.8-4+deb12u3
apt-get -qq -o APT::Sandbox::User=root download "slurmctld=$v" "slurmd=$v" "slurmrestd=$v" "slurm-client=$v" \
	"slurm-wlm-basic-plugins=$v" munge=0.5.15-2+deb12u1 libmunge2=0.5.15-2+deb12u1 libhwloc15=2.9.0-1 libnuma1=2.0.16-1 \
	libreadline8=8.2-1.3 libhttp-parser2.9=2.9.4-5 libjson-c5=0.16-2 libyaml-0-2=0.2.5-1
for deb in *.deb; do dpkg -x "$deb" .; done
for name in slurmctld slurmd slurmstepd; do ln -s "$name-wlm" "usr/sbin/$name"; done # as Debian's alternatives do
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu/slurm-wlm:$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
export PATH="$dir/usr/bin:$dir/usr/sbin:$PATH" SLURM_CONF="$dir/slurm.conf"
chmod 755 .
mkdir state spool rest
if [ "$as" ]; then chown nobody:nogroup rest; fi
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
# Without slurmdbd slurmrestd ends at the plugins that ask it, so one is named.
$as slurmrestd -a rest_auth/local -s openapi/v0.0.38 "unix:$dir/rest/socket" >slurmrestd.log 2>&1 &
pids="$pids $!"
call() { # asks slurmrestd for a path; what else is given goes to curl
	$as curl -sS --fail --max-time 20 --unix-socket "$dir/rest/socket" "slurmrestd$1" "${@:2}" # on a socket any name will do
}
is() { [ "$(squeue -h -t all -j "$1" -o %T)" = "$2" ]; } # a job's id and state
idle() { [ "$(sinfo -h -o %T)" = idle ]; }
await idle
await call /slurm/v0.0.38/ping
submit() { # submits a job with these properties; prints its id
	jq -n --argjson more "$1" '{script: "#!/bin/sh\nexec sleep 60\n", job: ({environment: {LANG: "C"},
		current_working_directory: "/", standard_output: "/dev/null"} + $more)}' |
		call /slurm/v0.0.38/job/submit -H 'Content-Type: application/json' -d @- | jq -e .job_id
}
shown() { # prints a value that scontrol shows of a job, by its name
	scontrol show job "$1" | tr ' ' '\n' | grep "^$2=" || echo "no $2"
}
held() { # prints properties, and what scontrol shows of a held job that has them
	echo "$1 $(shown "$(submit "$(jq -n --argjson more "$1" '{hold: true} + $more')")" "$2")"
}
requeued() { # requeues a running job that has these properties; prints what scontrol says
	local job said rc=0
	job=$(submit "$1")
	await is "$job" RUNNING
	said=$(scontrol requeue "$job" 2>&1) || rc=$?
	if [ "$rc" = 0 ]; then await is "$job" PENDING; fi
	echo "$1 rc $rc, says ${said:-nothing}; $(shown "$job" Restarts)"
	scancel "$job"
}
keys=$(call /openapi/v3 | jq -r '.components.schemas["v0.0.38_job_properties"].properties |
	[(.requeue, .oversubscribe, .spread_job).type, (if has("no_requeue") then "listed" else "not listed" end)] | join(", ")')
seen="described: requeue, oversubscribe, spread_job, no_requeue: $keys
JobRequeue=1: $(held '{}' Requeue), $(held '{"requeue":false}' Requeue), $(held '{"no_requeue":true}' Requeue)
scontrol requeue: $(requeued '{"requeue":false}')
scontrol requeue: $(requeued '{"no_requeue":true}')
$(held '{}' OverSubscribe), $(held '{"oversubscribe":false}' OverSubscribe)
$(held '{}' SpreadJob), $(held '{"spread_job":false}' SpreadJob)"
echo JobRequeue=0 >>slurm.conf
scontrol reconfigure
seen="$seen
JobRequeue=0: $(held '{}' Requeue), $(held '{"requeue":false}' Requeue)"
want='described: requeue, oversubscribe, spread_job, no_requeue: boolean, boolean, boolean, not listed
JobRequeue=1: {} Requeue=1, {"requeue":false} Requeue=1, {"no_requeue":true} Requeue=0
scontrol requeue: {"requeue":false} rc 0, says nothing; Restarts=1
scontrol requeue: {"no_requeue":true} rc 1, says Requested operation is presently disabled for job 5; Restarts=0
{} OverSubscribe=OK, {"oversubscribe":false} OverSubscribe=YES
{} no SpreadJob, {"spread_job":false} SpreadJob=Yes
JobRequeue=0: {} Requeue=0, {"requeue":false} Requeue=1'
printf '%s\n' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
