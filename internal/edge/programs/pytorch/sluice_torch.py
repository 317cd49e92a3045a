"""Lets a training loop be cut anywhere and go on as if it had not been: one file, to be copied beside the program.

Standard library alone, beside the torch that the program has imported; Python 3.8 or later. Without Sluice it saves to a folder.

    import sluice_torch

    batches = sluice_torch.Batches(len(data), size=64, seed=1)
    ckpt = sluice_torch.Checkpointer(total=20000, every=500, model=model, optimizer=optimizer, batches=batches)
    loader = DataLoader(data, batch_sampler=batches, generator=torch.Generator())
    for x, y in ckpt.loop(loader):
        train(x, y)

Everything that is given by name is saved: whatever has state_dict() and load_state_dict(). The states of the random number
generators of Python, NumPy and torch go along: without them a resumed run has other dropout, and says nothing of it.
"""

import json
import os
import random
import re
import signal
import sys

__all__ = ["Batches", "Checkpointer"]

#: The exit status that says: stopped early, what was reported counts.
EXIT_YIELD = 85


class Batches:
    """A batch sampler that skips what is done: the batch of a step depends on the seed and the step alone, epoch after epoch, and so
    nothing is drawn again after a cut. Give it to a DataLoader as batch_sampler; it never ends, Checkpointer.loop does."""

    def __init__(self, length, size, seed=0):
        if not 0 < size <= length:
            raise ValueError("size is %d: want 1 to the %d examples that there are" % (size, length))
        self.length, self.size, self.seed, self.step = length, size, seed, 0

    def __iter__(self):
        per_epoch = self.length // self.size  # a last batch that is not full is left out
        step = self.step
        while True:
            order = list(range(self.length))
            random.Random("%d %d" % (self.seed, step // per_epoch)).shuffle(order)
            for at in range(step % per_epoch, per_epoch):
                yield order[at * self.size : (at + 1) * self.size]
                step += 1


class Checkpointer:
    """Goes on from the last checkpoint, saves every so many steps and when it is told to stop, and ends in time.

    total    the steps of the whole training
    every    steps between two checkpoints
    batches  a Batches, which is set to the step; others that skip need an attribute `step`
    folder   where to save without Sluice; with it the subjob's own folder counts
    parts    what is saved, by name
    """

    def __init__(self, total, every=500, batches=None, folder="checkpoints", **parts):
        self.total, self.every, self.batches, self.parts = total, every, batches, parts
        env = os.environ.get
        self.folder = env("SLUICE_CHECKPOINT_DIR") or folder
        self.to = min(total, int(env("SLUICE_TO") or total))
        self._resume = env("SLUICE_RESUME_DIR") or (None if env("SLUICE_CHECKPOINT_DIR") else folder)
        self._progress = env("SLUICE_PROGRESS_FILE")
        self._told = False
        signal.signal(signal.SIGTERM, self._on_signal)
        self.step = self._load()
        if env("SLUICE_FROM") and self.step != int(env("SLUICE_FROM")):
            raise SystemExit("the checkpoint is of step %d, this subjob begins at %s" % (self.step, env("SLUICE_FROM")))
        if batches is not None:
            batches.step = self.step

    def _on_signal(self, number, frame):
        self._told = True

    def loop(self, loader):
        """Yields what the loader has, a step each, up to the end of this part. Saves behind a step where that is due."""
        if self.step >= self.to:
            return
        for batch in loader:
            yield batch
            self.on_step_end()
            if self.step >= self.to:
                return

    def on_step_end(self):
        """The callback of a loop that is not ours: call it behind each step. It ends the program where it is told to stop."""
        self.step += 1
        if self.step % self.every == 0 or self.step >= self.to or self._told:
            self.save()
        if self._told and self.step < self.to:
            sys.stdout.flush()
            os._exit(EXIT_YIELD)  # not by an exception, which workers of a DataLoader would outlive for seconds

    def save(self):
        """Saves under a name of its own, beside the one before: torch.save to a name that is there destroys it first."""
        torch = sys.modules["torch"]
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state["random"] = {"python": random.getstate(), "torch": torch.get_rng_state()}
        if torch.cuda.is_available():
            state["random"]["cuda"] = torch.cuda.get_rng_state_all()
        if "numpy" in sys.modules:
            state["random"]["numpy"] = sys.modules["numpy"].random.get_state()
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, "step-%d.pt" % self.step)
        with open(path + ".new", "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".new", path)
        if self._progress:
            with open(self._progress + ".new", "w") as f:
                json.dump({"progress": self.step, "checkpoint": True}, f)
            os.replace(self._progress + ".new", self._progress)
        for other in os.listdir(self.folder):
            if re.fullmatch(r"step-\d+\.pt(\.new)?", other) and other != os.path.basename(path):
                os.remove(os.path.join(self.folder, other))

    def output(self, name):
        """The path of a file of results: of a subjob's output, or here."""
        return os.path.join(os.environ.get("SLUICE_OUTPUT_DIR") or ".", name)

    def _load(self):
        """Loads the newest checkpoint, and returns its step; 0 where there is none."""
        steps = []
        if self._resume and os.path.isdir(self._resume):
            steps = [int(m[1]) for m in (re.fullmatch(r"step-(\d+)\.pt", n) for n in os.listdir(self._resume)) if m]
        if not steps:
            return 0
        torch = sys.modules["torch"]
        state = torch.load(  # our own file: torch 2.6 and later would take weights alone
            os.path.join(self._resume, "step-%d.pt" % max(steps)), map_location="cpu", weights_only=False
        )
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        states = state["random"]
        random.setstate(states["python"])
        torch.set_rng_state(states["torch"])
        if "cuda" in states and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(states["cuda"])
        if "numpy" in states and "numpy" in sys.modules:
            sys.modules["numpy"].random.set_state(states["numpy"])
        return max(steps)
