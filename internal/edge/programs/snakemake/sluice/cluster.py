#!/usr/bin/env python3
"""What Snakemake 7 calls for each instance of a rule: submit ... JOBSCRIPT prints a job's name, status NAME says how it is, cancel NAME...

A job runs in the workflow's directory, so its outputs land where Snakemake looks for them. Snakemake's jobs outlive it, and then write
into the files of its next run: so what an earlier run has left of the same rule instance is cancelled, and gone, before it is submitted
again.
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
import uuid

FINAL = {"COMPLETED": "success", "FAILED": "failed", "CANCELLED": "failed", "EXPIRED": "failed"}


def sluice(*args, text=None):
    return subprocess.run(["sluice"] + list(args), input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)


def state(name):
    """The job's state, or None if the daemon does not answer, or "" if there is no such job."""
    done = sluice("job", name, "-o", "json")
    if done.returncode == 0:
        return json.loads(done.stdout)["state"]
    return "" if "there is no job" in done.stderr else None


def end(name):
    """Cancels a job, and waits until nothing of it runs."""
    while True:
        now = state(name)
        if now in FINAL or now == "":
            return
        if now is not None:
            sluice("cancel", name)
        time.sleep(0.5)


def submit(args):
    with open(args.script) as f:
        text = f.read()
    properties = {}
    for line in text.splitlines():
        if line.startswith("# properties = "):
            properties = json.loads(line[len("# properties = "):])
    here = os.getcwd()
    what = properties.get("rule") or properties.get("groupid")
    same = json.dumps([here, what, properties.get("output"), properties.get("wildcards")], sort_keys=True)
    ledger = os.path.join(".snakemake", "sluice")
    os.makedirs(ledger, exist_ok=True)
    entry = os.path.join(ledger, hashlib.sha256(same.encode()).hexdigest()[:20])
    if os.path.exists(entry):
        with open(entry) as f:
            end(f.read().strip())
    name = "snakemake-" + uuid.uuid4().hex[:16]
    # Written before the job is submitted, so that there is none that the ledger does not know.
    with open(entry + ".new", "w") as f:
        f.write(name)
        f.flush()
        os.fsync(f.fileno())
    os.replace(entry + ".new", entry)
    job = {
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Job", "metadata": {"name": name},
        "spec": {
            "rigid": {"walltime": "%dm" % args.minutes}, "memory": "%dMi" % args.mib,
            # A rule that fails is Snakemake's to try again (--retries, retries:), with attempt and clean outputs. What ended a job
            # from outside, such as a lost machine, is no failure of its, and has it run again here.
            "maxFailures": 1,
            # The script goes along as text: Snakemake removes its file with itself.
            "command": ["sh", "-c", "cd %s && exec sh -c \"$0\"" % shlex.quote(here), text],
        },
    }
    for wait in (0, 1, 2, 4, 8, 16, 32):
        time.sleep(wait)
        done = sluice("submit", "-f", "-", "--request-id", name, text=json.dumps(job))
        if done.returncode != 3:  # 3: no daemon answers; the same request is the same job, however often it is sent
            break
    sys.stderr.write(done.stderr)
    if done.returncode:
        sys.exit(1)
    print(name)


def status(args):
    """One word, always: Snakemake gives up the whole workflow at any other answer. While the daemon is away the job runs on."""
    now = state(args.names[0])
    print("failed" if now == "" else FINAL.get(now, "running"))


def cancel(args):
    for name in args.names:
        sluice("cancel", name)


def main():
    p = argparse.ArgumentParser()
    verbs = p.add_subparsers(dest="verb", required=True)
    s = verbs.add_parser("submit")
    s.add_argument("--minutes", type=int, default=60)
    s.add_argument("--mib", type=int, default=1024)
    s.add_argument("script")
    for verb in ("status", "cancel"):
        verbs.add_parser(verb).add_argument("names", nargs="+")
    args = p.parse_args()
    {"submit": submit, "status": status, "cancel": cancel}[args.verb](args)


main()
