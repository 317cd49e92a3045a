"""Trains a small network by stochastic gradient descent with momentum, with Python's standard library alone.

A chain of checkpoints: each subjob takes up the state that the last committed one left. The batch of a step depends on
the step's number, the state goes through JSON, which keeps every bit of a Python float, and so the final weights equal
those of a run that was never interrupted, bit by bit. check.sh makes that run.
"""

import json
import math
import os
import random
import time

import sluice

INPUTS, HIDDEN, BATCH, EVERY = 6, 10, 128, 100
RATE, MOMENTUM = 0.05, 0.9


def example(rng):
    """A point of the unit cube, and whether its coordinates, weighed by sines, are positive: nothing is read from disk."""
    x = [rng.uniform(-1, 1) for _ in range(INPUTS)]
    return x, 1.0 if sum(math.sin(3 * v) * (i + 1) for i, v in enumerate(x)) > 0 else 0.0


def start():
    rng = random.Random(20250919)
    hidden = [[rng.gauss(0, 0.5) for _ in range(INPUTS + 1)] for _ in range(HIDDEN)]
    output = [rng.gauss(0, 0.5) for _ in range(HIDDEN + 1)]
    return {
        "hidden": hidden,
        "output": output,
        "hidden_speed": [[0.0] * (INPUTS + 1) for _ in range(HIDDEN)],
        "output_speed": [0.0] * (HIDDEN + 1),
    }


def step(state, number):
    """One step of training; returns the mean loss over its batch. Sums run in a fixed order."""
    rng = random.Random(number)
    hidden, output = state["hidden"], state["output"]
    hidden_grad = [[0.0] * (INPUTS + 1) for _ in range(HIDDEN)]
    output_grad = [0.0] * (HIDDEN + 1)
    loss = 0.0
    for _ in range(BATCH):
        x, want = example(rng)
        x.append(1.0)
        h = [math.tanh(sum(w * v for w, v in zip(row, x))) for row in hidden] + [1.0]
        z = sum(w * v for w, v in zip(output, h))
        got = 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))
        loss -= math.log(max(1e-12, got if want else 1 - got))
        error = got - want
        for j in range(HIDDEN + 1):
            output_grad[j] += error * h[j]
        for j in range(HIDDEN):
            back = error * output[j] * (1 - h[j] * h[j])
            for i in range(INPUTS + 1):
                hidden_grad[j][i] += back * x[i]
    for j in range(HIDDEN + 1):
        state["output_speed"][j] = MOMENTUM * state["output_speed"][j] - RATE * output_grad[j] / BATCH
        output[j] += state["output_speed"][j]
    for j in range(HIDDEN):
        for i in range(INPUTS + 1):
            state["hidden_speed"][j][i] = MOMENTUM * state["hidden_speed"][j][i] - RATE * hidden_grad[j][i] / BATCH
            hidden[j][i] += state["hidden_speed"][j][i]
    return loss / BATCH


def main():
    job = sluice.Subjob.from_env()
    state = job.resume(json.load) or start()
    total, pace = int(os.environ["TOTAL_STEPS"]), float(os.environ.get("PACE", "0"))
    at = job.from_
    with open(job.output_path("loss-%06d.txt" % at), "w") as losses:
        while at < job.to:  # not range(): with continuation, `to` can move
            loss = step(state, at)
            at += 1
            if at % EVERY == 0 and at < total:
                losses.write("%d %.6f\n" % (at, loss))
                losses.flush()
                job.checkpoint(at, lambda f: f.write(json.dumps(state).encode()))
                time.sleep(pace)  # stands for time on the device
            if at < job.to and job.should_stop(need=0.5):
                job.yield_()  # what was checkpointed counts
    if at == total:
        with open(job.output_path("weights.json"), "w") as f:
            json.dump({"hidden": state["hidden"], "output": state["output"]}, f)
            f.write("\n")


if __name__ == "__main__":
    main()
