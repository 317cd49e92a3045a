"""Fails: MODE=memory takes more of the device's memory than there is, MODE=crash is a fault of its own while it holds some."""

import os

import device

gpu = device.open_device()
kept = [gpu.take(64 << 20)]
if os.environ["MODE"] == "crash":
    raise ValueError("a fault that has nothing to do with memory")
piece = gpu.memory()[1] // 16
while True:
    kept.append(gpu.take(piece))
