"""The training loop of the trials: a chain of checkpoints, cut where one may lie. TOTAL and EVERY are the job's."""

import json
import os
import time

import sluice

began = time.time()

WARM = 10  # steps in which libraries are still loaded


def main():
    job = sluice.Subjob.from_env()
    total, every = int(os.environ["TOTAL"]), int(os.environ["EVERY"])

    import device
    import work

    gpu = device.open_device()
    memory = gpu.take(int(os.environ.get("HOLD", "0")))  # beside the network, so that its coming and going is seen
    net = work.net(gpu)
    at = job.from_
    if at > 0:
        net = job.resume(net.load)
    ready = warm = time.time()
    while at < job.to:
        net.step(at)
        gpu.sync()
        at += 1
        if at == job.from_ + WARM:
            warm = time.time()
        if at % every == 0 and at < total:
            job.checkpoint(at, net.save)
        if at < job.to and job.should_stop(need=1.0):
            job.yield_()
    with open(job.output_path("train-%08d.json" % at), "w", encoding="ascii") as f:
        json.dump({"from": job.from_, "to": at, "startup": ready - began, "run": time.time() - ready,
                   "step": (time.time() - warm) / max(1, at - job.from_ - WARM), "digest": net.digest()}, f)
        f.write("\n")
    del memory


if __name__ == "__main__":
    main()
