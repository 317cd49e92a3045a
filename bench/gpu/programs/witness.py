"""Looks at one GPU again and again, and prints what NVML says of it, a line of JSON for each look, until its stdin ends.

With --list it prints what GPUs there are instead. Exit status 3: there is none.
"""

import json
import select
import sys
import time

import nvml


def gpus(lib):
    found = []
    for gpu in lib.gpus:
        total, used = lib.memory(gpu)
        found.append({"uuid": lib.uuid(gpu), "name": lib.name(gpu), "total": total, "used": used, "mig": lib.mig(gpu)})
    return {"driver": lib.driver(), "gpus": found}


def main():
    try:
        lib = nvml.NVML()
    except nvml.Missing as e:
        print(e, file=sys.stderr)
        sys.exit(3)
    if sys.argv[1] == "--list":
        print(json.dumps(gpus(lib)))
        return
    gpu = next(g for g in lib.gpus if lib.uuid(g) == sys.argv[1])
    interval = float(sys.argv[2])
    while not select.select([sys.stdin], [], [], interval)[0]:
        before = time.time()
        look = {"before": before, "used": lib.memory(gpu)[1], "processes": lib.processes(gpu), "after": time.time()}
        look["power"], look["busy"] = lib.power(gpu), lib.busy(gpu)
        print(json.dumps(look), flush=True)


if __name__ == "__main__":
    main()
