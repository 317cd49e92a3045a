"""What this Python has: its version, PyTorch and what of the GPU PyTorch sees, and how long it took to get there."""

import json
import platform
import sys
import time

began = time.time()
try:
    import torch
except ImportError as e:
    print(json.dumps({"python": platform.python_version(), "path": sys.executable, "trouble": "no PyTorch: %s" % e}))
    sys.exit(0)
found = {"python": platform.python_version(), "path": sys.executable, "torch": torch.__version__, "cuda": torch.version.cuda}
try:
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    found["capability"] = "%d.%d" % torch.cuda.get_device_capability(0)
except Exception as e:  # whatever it is, it is said
    found["trouble"] = "PyTorch has no GPU: %s" % str(e).splitlines()[0]
found["seconds"] = time.time() - began
print(json.dumps(found))
