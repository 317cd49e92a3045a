"""What NVML says of the device before this process has touched it: whoever had it before must be gone."""

import json
import sys
import time

import nvml
import sluice

began = time.time()
job = sluice.Subjob.from_env()
lib = nvml.NVML()
uuid = sys.argv[1]
gpu = next(g for g in lib.gpus if lib.uuid(g) == uuid)
with open(job.output_path("look.json"), "w", encoding="ascii") as f:
    json.dump({"began": began, "used": lib.memory(gpu)[1], "processes": lib.processes(gpu)}, f)
job.progress(job.to)
