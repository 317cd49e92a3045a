#!/bin/bash
# A pilot of Sluice: a machine that joins a cluster for as long as this batch job lasts (docs/slurm.md).
# What it is and whom it calls stands above; its token is in neither.
umask 077
token=${SLUICE_PILOT_TOKEN-}
unset SLUICE_PILOT_TOKEN SLURM_TIME_FORMAT
export LC_ALL=C HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)} USER=${USER:-$(id -un)}
export PATH="${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
own= rc=1

say() { printf '%s %s\n' "$(date -u +%FT%TZ)" "$*"; }

# fail also tells the head, where the own log can't: there is none yet, or its disk is full.
fail() {
  say "$*"
  if [ -n "$log_file" ] && ! [ -s "$own/log" ]; then say "$*" >"$log_file"; fi
  exit 1
}

# reap kills whatever names a folder in its command line or its environment, until twice nothing does: the daemon, its supervisors and what
# they ran, also what has left their sessions. Slurm does not, where it follows processes by their parents (proctrack/linuxproc). Twice, as a
# process shows neither for a moment while it becomes another program.
reap() {
  local round pid found none=0
  for round in {1..50}; do
    found=
    for pid in $(printf '%s/\n' "$1" | grep -lsaF -f - /proc/[0-9]*/cmdline /proc/[0-9]*/environ | cut -d/ -f3 | sort -un); do
      if [ "$pid" != $$ ] && [ "$pid" != "$BASHPID" ] && kill -KILL "$pid" 2>/dev/null; then found=1; fi
    done
    if [ -n "$found" ]; then none=0; else none=$((none + 1)); fi
    [ "$none" -lt 2 ] || return 0
    sleep 0.1
  done
  say "processes of $1 can't be ended"
}

# began is when a process began, in ticks; nothing: there is no such process. Its name may hold blanks and brackets.
began() {
  local stat
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 0
  stat=${stat##*) }
  set -- $stat
  printf '%s' "${20}"
}

# sweep ends and removes what is left of earlier pilots of this daemon that were killed before they could.
sweep() {
  local old pid ticks
  for old in "$scratch/sluice-$mark."*; do
    if ! [ -d "$old" ] || [ -L "$old" ] || ! [ -O "$old" ]; then continue; fi
    if [ -f "$old/pilot" ]; then
      read -r pid ticks <"$old/pilot" || continue
      [ "$(began "$pid")" != "$ticks" ] || continue
    elif [ -z "$(find "$old" -prune -mmin +10)" ]; then
      continue # it is just being made
    fi
    reap "$old"
    rm -rf -- "$old"
  done
}

finish() {
  trap '' TERM USR1 INT HUP
  [ -n "$own" ] || return 0
  reap "$own"
  # One that has left since its head was silent ends with 0, and says so in the end of its log (cli/daemon's ownerless).
  if [ -n "$log_file" ] && { [ "$rc" != 0 ] || grep -qF 'nothing was heard of its head for ' "$own/log"; }; then
    if [ -s "$own/log" ]; then
      tail -c 4000 "$own/log" >"$log_file"
    elif ! [ -s "$log_file" ]; then
      say "it ended with $rc, and nothing could be written to its log: is $scratch full?" >"$log_file"
    fi
  fi
  rm -rf -- "$own"
}

if [ -z "${SLURM_JOB_ID-}" ] || [ "${SLURM_JOB_NAME-}" != "$job_name" ]; then fail "this script runs as batch job $job_name alone"; fi
if [ -n "${SLURM_RESTART_COUNT-}" ]; then fail "a pilot runs once, and is not started again"; fi
scratch=${scratch:-${TMPDIR:-/tmp}}
sweep
own=$(mktemp -d "$scratch/sluice-$mark.XXXXXXXXXX") || fail "no folder can be made in $scratch"
trap finish EXIT
printf '%s %s\n' $$ "$(began $$)" >"$own/pilot" || fail "nothing can be written to $scratch: is it full?"
exec </dev/null >>"$own/log" 2>&1
cd "$own" || exit 1

if [ -n "$token_file" ]; then token=$(<"$token_file"); rm -f -- "$token_file"; fi # it is good once
[ -n "$token" ] || fail "it has no token"
printf '%s\n' "$token" >"$own/token" || fail "nothing can be written to $scratch: is it full?"
unset token

# The end as Slurm has it; what comes of a length counts from now, and so is shorter.
end=$(TZ=UTC timeout -k 1 20 squeue -h -j "$SLURM_JOB_ID" -o %e 2>/dev/null)
case $end in
[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]) until=${end}Z ;;
*) until=$((length - SECONDS - 5))s ;;
esac

prepare

daemon= told=
tell() {
  told=1
  if [ -n "$daemon" ]; then kill -TERM "$daemon" 2>/dev/null; fi
}
trap tell TERM USR1 INT HUP
say "pilot $name in job $SLURM_JOB_ID until $until"
"${within[@]}" "$sluice" join "$head" --token-file "$own/token" --name "$name" --data "$own/data" --listen 127.0.0.1:0 \
  --gpus "$gpus" --ephemeral --until "$until" "${more[@]}" &
daemon=$!
if [ -n "$told" ]; then tell; fi
asked=
while told=; wait "$daemon"; rc=$?; [ -n "$told" ]; do asked=1; done
case $asked,$rc in 1,-1 | 1,127) rc=0 ;; esac # bash forgets how a child ended that ends just as a signal comes
say "the daemon ended with $rc"
exit "$rc"
