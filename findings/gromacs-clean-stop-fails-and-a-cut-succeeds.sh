#!/usr/bin/env bash
set -e -u -o pipefail
#
# gmx mdrun that is cut by -maxh ends with 0, as a run that is done does; one that stops cleanly on SIGTERM, with a whole checkpoint, ends
# with 1, as a fatal error does.
#
# Version: GROMACS 2022.5 as Debian 12 ships it (2022.5-2).
# Says:    that -maxh terminates a simulation and writes a checkpoint, and that a run may be terminated by a signal (gmx help mdrun); not
#          with which exit status.
# Does:    no status tells a run that is done from one that was cut, nor a clean stop from a failure.
# So:      who restarts mdrun by its status takes a cut run for a finished one, and a saved one for a broken one. The step in the
#          checkpoint says how far it is (gmx dump -cp), and the .gro that it is done.
# Output, seen on 2026-12-01:
#   cut by -maxh: status 0, step below 4000000, md.gro missing
#   SIGTERM: status 1, step above 0 in its checkpoint
#
# Needs Debian 12 on amd64 and its package lists, and a minute. Ends with 0 if that is still so, with 1 if it has changed.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p deb/partial unpacked
apt-get -qq -y --no-install-recommends --download-only -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Dir::State::status=/dev/null \
	-o Dir::Cache::archives="$dir/deb" install gromacs=2022.5-2 >/dev/null 2>&1
rm -f deb/libc6_*.deb
for deb in deb/*.deb; do dpkg -x "$deb" unpacked; done
lib=unpacked/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH="$dir/$lib:$dir/$lib/blas:$dir/$lib/lapack:$dir/unpacked/lib/x86_64-linux-gnu"
export GMXLIB="$dir/unpacked/usr/share/gromacs/top" OMP_NUM_THREADS=1
gmx() { "$dir/unpacked/usr/bin/gmx" -quiet "$@"; }
changed() { echo "it has changed: $1"; exit 1; }

cat > topol.top <<'END'
#include "amber99sb.ff/forcefield.itp"
#include "amber99sb.ff/tip3p.itp"
[ system ]
water
[ molecules ]
END
cat > md.mdp <<'END'
integrator = md
dt = 0.002
nsteps = 4000000
nstlist = 10
coulombtype = PME
rcoulomb = 0.8
rvdw = 0.8
tcoupl = v-rescale
tc-grps = System
tau-t = 0.5
ref-t = 300
gen-vel = yes
constraints = h-bonds
END
gmx solvate -cs spc216.gro -box 1.9 1.9 1.9 -o conf.gro -p topol.top >/dev/null 2>&1
gmx grompp -f md.mdp -c conf.gro -p topol.top -o topol.tpr >/dev/null 2>&1
step() { gmx dump -cp "$1" 2>/dev/null | sed -n 's/^step = *//p'; }

status=0
gmx mdrun -nt 1 -s topol.tpr -deffnm md -maxh 0.0008 >said 2>&1 || status=$?
at=$(step md.cpt)
[ "$status" = 0 ] && [ "$at" -lt 4000000 ] && [ ! -e md.gro ] || changed "cut by -maxh: status $status, step $at"
echo "cut by -maxh: status $status, step below 4000000, md.gro missing"

mkdir term && cd term
"$dir/unpacked/usr/bin/gmx" -quiet mdrun -nt 1 -s ../topol.tpr -deffnm md >said 2>&1 &
mdrun=$!
for _ in $(seq 300); do grep -q 'starting mdrun' said && break; sleep 0.2; done
sleep 3
kill -TERM "$mdrun"
status=0
wait "$mdrun" || status=$?
[ "$status" = 1 ] && [ "$(step md.cpt)" -gt 0 ] || changed "SIGTERM: status $status"
echo "SIGTERM: status $status, step above 0 in its checkpoint"
