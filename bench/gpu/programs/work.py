"""A small network that is trained, and asked: by PyTorch, or in a rehearsal on a machine without it by arithmetic alone.

The batch of a step is drawn from its number, and only kernels that give the same bits each time are used: a run that was cut and
one that was not end with the same weights.
"""

import ctypes
import hashlib
import json
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS is not deterministic; read when CUDA starts

RATE, MOMENTUM = 0.01, 0.9


class Net:
    """Layers of one width with ReLU between, trained to give back a fixed rotation of what they get."""

    def __init__(self, torch, device, width, batch, layers=3):
        self.torch, self.device, self.width, self.batch = torch, device, width, batch
        torch.use_deterministic_algorithms(True)
        draw = torch.Generator().manual_seed(7)  # on the processor: the same numbers whatever the GPU
        self.weights = [(torch.randn(width, width, generator=draw) * (2 / width) ** 0.5).to(device) for _ in range(layers)]
        self.speeds = [torch.zeros_like(w) for w in self.weights]

    def _inputs(self, number, batch):
        draw = self.torch.Generator(device=self.device).manual_seed(number)
        return self.torch.randn(batch, self.width, generator=draw, device=self.device)

    def _forward(self, x):
        for w in self.weights[:-1]:
            x = self.torch.relu(x @ w)
        return x @ self.weights[-1]

    def step(self, number):
        torch = self.torch
        x = self._inputs(number, self.batch)
        for w in self.weights:
            w.requires_grad_(True)
        loss = (self._forward(x) - torch.roll(x, 1, 1)).square().mean()
        gradients = torch.autograd.grad(loss, self.weights)
        with torch.no_grad():
            for w, v, g in zip(self.weights, self.speeds, gradients):
                w.requires_grad_(False)
                v.mul_(MOMENTUM).add_(g)
                w.sub_(v, alpha=RATE)

    def answer(self, number):
        with self.torch.no_grad():
            return float(self._forward(self._inputs(number, 64)).sum())

    def save(self, file):
        self.torch.save([t.cpu() for t in self.weights + self.speeds], file)

    def load(self, file):
        both = [t.to(self.device) for t in self.torch.load(file)]
        self.weights, self.speeds = both[: len(both) // 2], both[len(both) // 2 :]
        return self

    def digest(self):
        all_bytes = hashlib.sha256()
        for w in self.weights:
            w = w.cpu().contiguous()
            all_bytes.update(ctypes.string_at(w.data_ptr(), w.numel() * w.element_size()))
        return all_bytes.hexdigest()


class Plain:
    """Stands in for it where there is no PyTorch: numbers that depend on every step, in order."""

    def __init__(self):
        self.weights = [i / 7 for i in range(400)]

    def step(self, number):
        for _ in range(8):
            self.weights = [(w * 1.7 + i + number) % 1.0 for i, w in enumerate(self.weights)]

    def answer(self, number):
        return sum(w * number for w in self.weights)

    def save(self, file):
        file.write(json.dumps(self.weights).encode())

    def load(self, file):
        self.weights = json.load(file)
        return self

    def digest(self):
        return hashlib.sha256(json.dumps(self.weights).encode()).hexdigest()


def net(device):
    """The network, at a size that keeps the device busy for some milliseconds a step."""
    try:
        import torch
    except ImportError:
        if device.name == "cuda":
            raise
        return Plain()
    if device.name == "cuda":
        return Net(torch, device.name, 1024, 32768)
    torch.set_num_threads(1)
    return Net(torch, device.name, 32, 64)
