#!/usr/bin/env bash
set -e -u -o pipefail
#
# A heartbeat, which Optuna has for trials whose process is killed, takes such a trial's point out of a grid search: it counts as evaluated,
# and the study ends without it. Without a heartbeat the point is tried again.
#
# Version: Optuna 3.1.0 as Debian 12 ships it (3.1.0-4), SQLite, GridSampler.
# Says:    "automatically stops the optimization if all combinations in the passed search_space have already been evaluated"
#          (GridSampler).
# Does:    a trial whose heartbeat has stopped becomes FAIL with the next optimize(), and GridSampler takes each trial that is finished for
#          evaluated, FAIL too (samplers/_grid.py, _get_unvisited_grid_ids). One that stays RUNNING is not finished: its point is tried
#          again when all others have been.
# So:      a grid search that is resumed after a kill ends with a point that has no value, and says nothing of it. Give the storage
#          RetryFailedTrialCallback, or compare the points that are COMPLETE with the grid. An objective that raises loses its point alike.
# Output, seen on 2026-12-01:
#   no heartbeat: killed at 1 of 4 points; resumed until it stopped: 4 points COMPLETE, 1 trial RUNNING
#   heartbeat: killed at 1 of 4 points; resumed until it stopped: 3 points COMPLETE, 1 trial FAIL
#   heartbeat and RetryFailedTrialCallback: killed at 1 of 4 points; resumed until it stopped: 4 points COMPLETE, 1 trial FAIL
#
# Needs Debian 12 on amd64 and its package lists, and half a minute. Ends with 0 if that is still so, with 1 if it has changed.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p deb/partial unpacked
apt-get -qq -y --no-install-recommends --download-only -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Dir::State::status=/dev/null \
	-o Dir::Cache::archives="$dir/deb" install python3-optuna=3.1.0-4 >/dev/null 2>&1
rm -f deb/libc6_*.deb
for deb in deb/*.deb; do dpkg -x "$deb" unpacked; done
lib=unpacked/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH="$dir/$lib:$dir/$lib/blas:$dir/$lib/lapack:$dir/unpacked/lib/x86_64-linux-gnu"
export PYTHONHOME="$dir/unpacked/usr"

cat > study.py <<'END'
import os, signal, sys, warnings
import optuna

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
how, killed = sys.argv[1], sys.argv[2] == "killed"
options = {} if how == "no heartbeat" else {"heartbeat_interval": 1, "grace_period": 2}
if "Retry" in how:
    options["failed_trial_callback"] = optuna.storages.RetryFailedTrialCallback()
storage = optuna.storages.RDBStorage("sqlite:///study.db", **options)
sampler = optuna.samplers.GridSampler({"x": [0, 1, 2, 3]})
study = optuna.create_study(study_name="grid", storage=storage, sampler=sampler, load_if_exists=True)


def objective(trial):
    x = trial.suggest_int("x", 0, 3)
    if killed and trial.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


study.optimize(objective)
has = [t.state.name for t in study.trials]
points = len({t.params["x"] for t in study.trials if t.state.name == "COMPLETE"})
other = [s for s in has if s != "COMPLETE"]
print("%d points COMPLETE, %d trial %s" % (points, len(other), other[0]))
END
seen=
for how in 'no heartbeat' heartbeat 'heartbeat and RetryFailedTrialCallback'; do
	rm -f study.db
	status=0
	{ unpacked/usr/bin/python3.11 study.py "$how" killed || status=$?; } >/dev/null 2>&1
	[ "$status" = 137 ] || { echo "it has changed: status $status of the one that is killed"; exit 1; }
	sleep 6 # longer than the grace
	seen="$seen$how: killed at 1 of 4 points; resumed until it stopped: $(unpacked/usr/bin/python3.11 study.py "$how" resumed)
"
done
want='no heartbeat: killed at 1 of 4 points; resumed until it stopped: 4 points COMPLETE, 1 trial RUNNING
heartbeat: killed at 1 of 4 points; resumed until it stopped: 3 points COMPLETE, 1 trial FAIL
heartbeat and RetryFailedTrialCallback: killed at 1 of 4 points; resumed until it stopped: 4 points COMPLETE, 1 trial FAIL
'
printf '%s' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s' "$want" >&2; exit 1; }
