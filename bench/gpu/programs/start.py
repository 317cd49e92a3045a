"""When a program gets how far from its start: its first line, PyTorch, the device, the first result."""

import json
import os
import time

began = time.time()

import device  # noqa: E402
import work  # noqa: E402

try:
    import torch  # noqa: E402,F401
except ImportError:
    if not device.CLAIMS:
        raise
imported = time.time()
gpu = device.open_device()
opened = time.time()
work.net(gpu).answer(1)
gpu.sync()
with open(os.path.join(os.environ["SLUICE_OUTPUT_DIR"], "start.json"), "w", encoding="ascii") as f:
    json.dump({"began": began, "imported": imported, "opened": opened, "answered": time.time()}, f)
