#!/bin/sh
# Runs one stretch of an mdrun (GROMACS 2022): from its own checkpoint in run, until SIGTERM, -maxh or the last step.
# In the end it says how far the checkpoint is, since the exit status does not: mdrun ends with 0 after -maxh, and with 1 after SIGTERM.
set -u
say() { echo "gromacs.sh: $1" >&2; }

# SIGTERM comes to mdrun too. It is not sent on: a second one makes mdrun stop in a hurry. This shell waits.
trap : TERM

[ -s topol.tpr ] || { say "there is no topol.tpr in $PWD: make it with gmx grompp, and submit again"; exit 2; }
mkdir -p run && cd run || exit 1

# mdrun that is given the name of a checkpoint that is not there begins at step 0 too, but says nothing of it, and keeps what lies there.
resume=
if [ -s md.cpt ]; then
	resume='-cpi md.cpt'
elif [ -n "$(ls -A)" ]; then
	say "run has no md.cpt: mdrun was killed before its first checkpoint (see -cpt), and begins at step 0"
	find . -mindepth 1 -delete
fi

# What lies in run is taken for saved once nothing there has changed for two seconds. mdrun writes more than checkpoints, and says steps that
# are in none: so run is changed every second until its checkpoint has been asked.
(trap '' TERM; while :; do : >.running; sleep 1; done) &
running=$!

# mdrun is to stop by itself when SIGTERM is due, should that not reach it. It stops at 99 % of -maxh.
hours=$(($(date -d "${SLUICE_DEADLINE:-+1000 days}" +%s) - $(date +%s) - ${MARGIN:-30}))
[ "$hours" -gt 0 ] || hours=1
hours=$(awk "BEGIN { print $hours / 3600 }")

# Words of options and nothing else: they are split on purpose.
gmx -quiet mdrun ${OPTIONS:-} -v -stepout "${STEPOUT:-100}" -s ../topol.tpr -deffnm md $resume -maxh "$hours"
status=$?

# What counts is what was said by the time that run last changed: mdrun itself says steps that are in no checkpoint yet.
step=$(gmx -quiet dump -cp md.cpt 2>/dev/null | sed -n 's/^step = *//p')
echo "step ${step:-0} is in the checkpoint; mdrun ended with status $status"
sleep 0.3
kill -9 "$running"
rm -f .running
echo "${step:-0}" >step
exit "$status"
