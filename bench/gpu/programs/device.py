"""The device that a trial's program works on: the GPU, through PyTorch, or in a rehearsal a pretended one.

A rehearsal (`run -rehearse`) has no GPU. What a program takes there is a claim: a file that is as long as the memory and locked
for as long as its process lives, so that it is given back however that ends, as a driver does it. The pretended libnvidia-ml.so.1
of the tests counts these files.
"""

import fcntl
import os
import sys
import tempfile

CLAIMS = os.environ.get("GPU_TRIAL_CLAIMS", "")
CONTEXT = 16 << 20  # what a pretended process takes besides what it asks for


class OutOfMemoryError(RuntimeError):
    """Says what PyTorch says."""


class GPU:
    """The first GPU that this process may see."""

    name = "cuda"

    def __init__(self):
        import torch

        self.torch = torch
        if not torch.cuda.is_available():
            sys.exit("PyTorch sees no GPU: CUDA_VISIBLE_DEVICES=%r" % os.environ.get("CUDA_VISIBLE_DEVICES"))
        torch.zeros(1, device="cuda")
        self.sync()

    def take(self, size):
        """So many bytes, for as long as the result is kept."""
        return self.torch.empty(size, dtype=self.torch.uint8, device="cuda")

    def sync(self):
        self.torch.cuda.synchronize()

    def memory(self):
        """Free bytes and all, as the driver says."""
        return self.torch.cuda.mem_get_info()


class Pretended:
    """A device of files."""

    name = "cpu"

    def __init__(self, claims):
        self.claims = claims
        with open(os.path.join(claims, "total"), encoding="ascii") as f:
            self.total = int(f.read())
        self.kept = [self.take(CONTEXT)]

    def take(self, size):
        if size > self.memory()[0]:
            raise OutOfMemoryError("CUDA out of memory: tried to take %d bytes of a pretended GPU, of which %d are free" % (size, self.memory()[0]))
        handle, path = tempfile.mkstemp(prefix=".new-", dir=self.claims)
        os.ftruncate(handle, size)
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.rename(path, os.path.join(self.claims, "claim-" + os.path.basename(path)[5:]))  # locked from when it is seen
        return os.fdopen(handle, "wb")

    def sync(self):
        pass

    def memory(self):
        used = 0
        for name in os.listdir(self.claims):
            if not name.startswith("claim-"):
                continue
            try:
                handle = os.open(os.path.join(self.claims, name), os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # nobody has it any more
            except BlockingIOError:
                used += os.fstat(handle).st_size
            finally:
                os.close(handle)
        return self.total - used, self.total


def open_device():
    return Pretended(CLAIMS) if CLAIMS else GPU()
