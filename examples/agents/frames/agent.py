"""An agent that learns what its job takes: SLUICE_AGENT_KEY=$(sluice agent key frames) python3 agent.py

Its job file declares 5 ms a frame. The agent begins with one short piece, hears how long it ran, and from then on cuts pieces
that end when it says they do. Needs sluice_agent.py (sdk/python) beside it or in PYTHONPATH.
"""

import os
import sys

import sluice_agent as sa

GRID = 10  # frames: cut points of the job file
GRACE = 1.0  # seconds, of the job file
LONGEST = 4.0  # seconds: shorter pieces teach more, and leave windows to others


class Model:
    """Seconds that n frames take at speed 1: a start, and so much for each. Both are learned, with the worst of late as margin."""

    def __init__(self, start=0.1, frame=0.005):
        self.start, self.frame = start, frame
        self.seen = []  # (frames, seconds at speed 1) of pieces that ended well, the latest last
        self.margin = 2.0  # until something was seen

    def learn(self, frames, seconds):
        self.seen = (self.seen + [(frames, seconds)])[-20:]
        rates = sorted((s - self.start) / n for n, s in self.seen)
        self.frame = max(1e-6, rates[len(rates) // 2])
        self.margin = 1.05 * max(1.0, *(s / (self.start + n * self.frame) for n, s in self.seen))

    def seconds(self, frames, speed):
        return self.margin * (self.start + frames * self.frame) / speed

    def frames(self, seconds, speed):
        """How many frames are done in so many seconds, on the grid."""
        n = (seconds * speed / self.margin - self.start) / self.frame
        return int(max(0, n) // GRID * GRID)


class Agent:
    def __init__(self, model):
        self.model = model
        self.speeds = {}  # of windows that were offered, to know what a piece that ran in one says of speed 1

    def propose(self, call):
        free = list(call.free)
        for w in call.windows:
            self.remember(w)
            while free and free[0][0] >= free[0][1]:
                free.pop(0)
            if not free:
                return
            first, end = free[0]
            most = self.model.frames(min(w.length - GRACE, LONGEST), w.speed) if self.model.seen else GRID
            n = min(most, end - first)
            if n <= 0:
                continue
            free[0] = (first + n, end)  # another window gets other frames, so that both can be won
            # The whole, and half of it: both begin with the window, so only one of them can be sold.
            for part in {n, n // 2 // GRID * GRID} - {0}:
                run = self.model.seconds(part, w.speed)
                yield sa.Variant(w, first, first + part, run=run, score=min(1.0, part / call.left))

    def remember(self, window):
        self.speeds[window.id] = window.speed
        while len(self.speeds) > 1000:
            del self.speeds[next(iter(self.speeds))]

    def told(self, notice):
        if notice.kind == "concluded" and notice.outcome == "done" and notice.to > notice.from_:
            self.model.learn(notice.to - notice.from_, notice.ran * self.speeds.get(notice.window, 1.0))
            print("%d frames in %.2f s; now %.1f ms a frame" % (notice.to - notice.from_, notice.ran, 1000 * self.model.frame), flush=True)
        elif notice.kind == "denied":
            print("denied: " + notice.text, flush=True)


if __name__ == "__main__":
    agent = Agent(Model())
    sa.serve(sys.argv[1] if len(sys.argv) > 1 else "frames", os.environ["SLUICE_AGENT_KEY"], agent.propose, agent.told, log=lambda text: print(text, file=sys.stderr, flush=True))
