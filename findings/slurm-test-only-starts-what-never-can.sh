#!/usr/bin/env bash
set -e -u -o pipefail
#
# `sbatch --test-only` says when a job would start that its QOS never lets start, and ends with 0.
#
# Version: Slurm 22.05.8 as Debian 12 ships it (22.05.8-4+deb12u3), with slurmdbd on MariaDB 10.11.19.
# Says:    --test-only is to "validate the batch script and return an estimate of when a job would be scheduled to run given the current
#          job queue and all the other arguments specifying the job requirements" (sbatch(1)).
# Does:    it looks at nodes, partition and queue, and of the limits of a QOS only at those that refuse a job at submission. A job above
#          MaxWall, or above what one job may have (MaxTRESPerJob), is told a start at once on an idle node. Submitted, it is taken and
#          waits for ever with QOSMaxWallDurationPerJobLimit or QOSMaxCpuPerJobLimit. With Flags=DenyOnLimit of the QOS both are refused,
#          in the trial too. A partition's MaxTime is passed over alike.
# So:      a trial that succeeds says nothing about limits. Whoever submits for others looks at the reason of what waits, and ends what has
#          one that can never lift; sites that want mistakes to be told set DenyOnLimit.
# Output, seen on 2026-11-30:
#   MaxWall: the trial says when it starts, ends with 0; submitted it is PENDING QOSMaxWallDurationPerJobLimit
#   MaxTRESPerJob: the trial says when it starts, ends with 0; submitted it is PENDING QOSMaxCpuPerJobLimit
#   MaxWall, DenyOnLimit: the trial refuses it, ends with 1
#   MaxTRESPerJob, DenyOnLimit: the trial refuses it, ends with 1
#
# Needs Debian 12 on amd64 and its package lists, and half a minute. Ends with 0 if that is still so, with 1 if it has changed.
dir=$(mktemp -d)
pids=
trap 'timeout 5 scancel --me 2>/dev/null || true; sleep 1; kill $pids 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
v=22.05.8-4+deb12u3
m=1:10.11.19-0+deb12u1
apt-get -qq -o APT::Sandbox::User=root download "slurmctld=$v" "slurmd=$v" "slurm-client=$v" "slurm-wlm-basic-plugins=$v" \
	"slurmdbd=$v" "slurm-wlm-mysql-plugin=$v" "mariadb-server-core=$m" "libmariadb3=$m" libaio1=0.3.113-4 liburing2=2.3-3 \
	munge=0.5.15-2+deb12u1 libmunge2=0.5.15-2+deb12u1 libhwloc15=2.9.0-1 libnuma1=2.0.16-1 libreadline8=8.2-1.3
for deb in *.deb; do dpkg -x "$deb" .; done
for name in slurmctld slurmd slurmstepd; do ln -s "$name-wlm" "usr/sbin/$name"; done # as Debian's alternatives do
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu/slurm-wlm:$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
export PATH="$dir/usr/bin:$dir/usr/sbin:$PATH" SLURM_CONF="$dir/slurm.conf" MYSQL_UNIX_PORT="$dir/mariadb.socket"
chmod 755 .
mkdir state spool database
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
dbd=$(port)
cat > slurmdbd.conf <<END
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$dbd
SlurmUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
PidFile=$dir/slurmdbd.pid
PluginDir=$dir/usr/lib/x86_64-linux-gnu/slurm-wlm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=$(id -un)
StorageLoc=slurm_acct_db
END
chmod 600 slurmdbd.conf
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
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$dbd
AccountingStoragePass=$dir/munge.socket
AccountingStorageEnforce=associations,limits,qos
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(port) CPUs=8
PartitionName=all Nodes=n1 Default=YES
END
(umask 077; head -c 1024 /dev/urandom >munge.key)
munged --force --foreground --socket="$dir/munge.socket" --key-file="$dir/munge.key" --pid-file="$dir/munge.pid" \
	--seed-file="$dir/munge.seed" --log-file="$dir/munge.log" 2>/dev/null &
pids=$!
await test -S munge.socket
share=$dir/usr/share/mysql
options=(--no-defaults --datadir="$dir/database" --lc-messages-dir="$share" --character-sets-dir="$share/charsets"
	--skip-networking --socket="$dir/mariadb.socket" --pid-file="$dir/mariadb.pid" --user="$(id -un)")
{
	printf "create database mysql;\nuse mysql;\nset @auth_root_socket='%s';\n" "$(id -un)"
	cat "$share/mysql_system_tables.sql" "$share/mysql_system_tables_data.sql"
	echo 'create database slurm_acct_db;'
} | mariadbd "${options[@]}" --bootstrap 2>database.log
mariadbd "${options[@]}" 2>>database.log &
pids="$pids $!"
await test -S mariadb.socket
slurmdbd -D >slurmdbd.log 2>&1 &
pids="$pids $!"
await sacctmgr -i add cluster finding
slurmctld -D >slurmctld.log 2>&1 &
controller=$!
slurmd -D -N n1 -d "$dir/usr/sbin/slurmstepd" >slurmd.log 2>&1 &
pids="$pids $controller $!"
idle() { [ "$(sinfo -h -o %T)" = idle ]; }
await idle
qos() { sacctmgr -i "$@" >/dev/null; sleep 1; } # slurmctld is told by slurmdbd
qos add qos long MaxWall=5
qos add qos wide MaxTRESPerJob=cpu=1
qos add account a
qos modify account a set qos=long,wide,normal
qos add user "$(id -un)" Account=a
waits() { # a job's id; whether it waits by a limit of its QOS
	[[ "$(squeue -h -j "$1" -o '%T %r')" = 'PENDING QOS'* ]]
}
line() { # the limit, and the options of a job above it
	local said rc=0 job text
	said=$(sbatch --test-only -A a "${@:2}" --wrap true 2>&1) || rc=$?
	text="the trial refuses it"
	if [[ "$said" = *'to start at'* ]]; then text="the trial says when it starts"; fi
	text="$1: $text, ends with $rc"
	if job=$(sbatch --parsable -A a -o /dev/null "${@:2}" --wrap true 2>/dev/null); then
		await waits "$job"
		text="$text; submitted it is $(squeue -h -j "$job" -o '%T %r')"
	fi
	echo "$text"
}
seen=$(line MaxWall --qos long -t 10; line MaxTRESPerJob --qos wide -t 5 -c 2)
for name in long wide; do qos modify qos "$name" set Flags=DenyOnLimit; done
seen="$seen
$(line 'MaxWall, DenyOnLimit' --qos long -t 10; line 'MaxTRESPerJob, DenyOnLimit' --qos wide -t 5 -c 2)"
want='MaxWall: the trial says when it starts, ends with 0; submitted it is PENDING QOSMaxWallDurationPerJobLimit
MaxTRESPerJob: the trial says when it starts, ends with 0; submitted it is PENDING QOSMaxCpuPerJobLimit
MaxWall, DenyOnLimit: the trial refuses it, ends with 1
MaxTRESPerJob, DenyOnLimit: the trial refuses it, ends with 1'
printf '%s\n' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
