"""Holds SIZE bytes of the device's memory for HOLD seconds. With STUBBORN it takes no notice of being told to end."""

import json
import os
import signal
import time

import sluice

job = sluice.Subjob.from_env()
if os.environ.get("STUBBORN"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

import device  # noqa: E402

gpu = device.open_device()
free, total = gpu.memory()
memory = gpu.take(int(os.environ["SIZE"]))
gpu.sync()
with open(job.output_path("hold.json"), "w", encoding="ascii") as f:
    json.dump({"before": total - free, "during": total - gpu.memory()[0], "at": time.time()}, f)
time.sleep(float(os.environ["HOLD"]))
job.progress(job.to)
