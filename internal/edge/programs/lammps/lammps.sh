#!/bin/sh
# Runs one stretch of a LAMMPS run (29 Sep 2021): from the newest state in run, to the end of this subjob's part or until SIGTERM.
set -u
say() { echo "lammps.sh: $1" >&2; }

# LAMMPS dies of SIGTERM at once, and leaves nothing: it must not hear it. run.lmp looks for the file every 100 steps.
rm -f stop
trap 'touch stop' TERM

mkdir -p run || exit 1
at=-1
for f in run/state-*.restart; do
	n=${f#run/state-} n=${n%.restart}
	case $n in *[!0-9]* | '') continue ;; esac
	[ "$n" -le "$at" ] || at=$n
done
if [ "$at" -lt 0 ] && [ -n "${SLUICE_RESUME_DIR:-}" ]; then
	say "run has no state-STEP.restart, although this job has run before: nothing to go on from"
	exit 2
fi
to=${SLUICE_TO:?is not set: this is for a subjob}

left=$(($(date -d "${SLUICE_DEADLINE:-+1000 days}" +%s) - $(date +%s) - ${MARGIN:-30}))
[ "$left" -gt 0 ] || left=1
left=$(printf '%d:%02d:%02d' $((left / 3600)) $((left / 60 % 60)) $((left % 60)))

(trap '' TERM && exec ${LAMMPS:-lmp} -in run.lmp -log none -var at "$at" -var to "$to" -var left "$left") &
lammps=$!
while :; do # wait returns when SIGTERM comes, too
	wait "$lammps"
	status=$?
	kill -0 "$lammps" 2>/dev/null || break
done

# The newest state alone goes on; the older one is removed only now that there is another.
if [ "$status" = 0 ]; then
	[ "$(find run -name 'state-*.restart' | wc -l)" -lt 2 ] || rm -f "run/state-$at.restart"
	touch run/state-*.restart # the newest file with a number in its name says how far it is
fi
exit "$status"
