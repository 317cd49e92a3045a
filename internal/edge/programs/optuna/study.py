"""Runs the trials of a study, one after another, as a chain of checkpoints: after each trial the storage and the sampler, with the state
of its random numbers, are saved together. So a study that was cut goes on as if it had not been: no trial is lost, none is there twice,
none stays RUNNING, and the sampler does not draw its first trials again, as a seeded one does that is made anew.

A trial that is cut, or killed, is in no checkpoint: it is begun again by the next subjob, with the same number and parameters. A trial
that fails by itself (an exception) is one of the study's, FAIL; one that is pruned too.
"""

import json
import os
import pickle
import signal
import sqlite3
import sys

import optuna

from objective import objective

EXIT_YIELD = 85  # stopped early: what was reported counts


def copied(source, target):
    """Copies a database as SQLite does it, whole, to a name that is not there yet."""
    a, b = sqlite3.connect(source), sqlite3.connect(target)
    a.backup(b)
    a.close()
    b.close()


def main():
    begin, end = int(os.environ["SLUICE_FROM"]), int(os.environ["SLUICE_TO"])
    resume, folder = os.environ.get("SLUICE_RESUME_DIR"), os.environ["SLUICE_CHECKPOINT_DIR"]
    output, progress = os.environ["SLUICE_OUTPUT_DIR"], os.environ["SLUICE_PROGRESS_FILE"]
    here = os.path.join(os.environ.get("TMPDIR") or ".", "study.db")
    sampler = optuna.samplers.TPESampler(seed=int(os.environ.get("SEED", "1")))
    if resume:
        copied(os.path.join(resume, "trials-%d" % begin, "study.db"), here)
        with open(os.path.join(resume, "trials-%d" % begin, "sampler.pickle"), "rb") as f:
            sampler = pickle.load(f)
    study = optuna.create_study(
        study_name=os.environ["SLUICE_JOB"], storage="sqlite:///" + here, sampler=sampler, load_if_exists=True,
        direction=os.environ.get("DIRECTION", "minimize"))
    if len(study.trials) != begin:
        sys.exit("the storage has %d trials, this subjob begins at %d" % (len(study.trials), begin))

    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))  # a trial that is running may end within the grace
    for done in range(begin + 1, end + 1):
        study.optimize(objective, n_trials=1, catch=(Exception,))
        saving = os.path.join(folder, ".saving-%d" % done)
        os.mkdir(saving)
        copied(here, os.path.join(saving, "study.db"))
        with open(os.path.join(saving, "sampler.pickle"), "wb") as f:
            pickle.dump(study.sampler, f)
        os.rename(saving, os.path.join(folder, "trials-%d" % done))
        with open(progress + ".new", "w") as f:
            json.dump({"progress": done, "checkpoint": True}, f)
        os.replace(progress + ".new", progress)
        old = os.path.join(folder, "trials-%d" % (done - 1))
        if os.path.isdir(old):
            for name in os.listdir(old):
                os.remove(os.path.join(old, name))
            os.rmdir(old)
        if told and done < end:
            sys.exit(EXIT_YIELD)
    # The newest of the job's outputs is the whole study.
    copied(here, os.path.join(output, "study.db"))


main()
