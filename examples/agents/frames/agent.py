"""An agent that learns what its job takes: SLUICE_AGENT_KEY=$(sluice agent key frames) python3 agent.py

Its job file declares 5 ms a frame. The agent begins with one short piece, hears how long it ran, and from then on cuts pieces
that end when it says they do. Needs sluice_agent.py (sdk/python) beside it or in PYTHONPATH.
"""

import os
import sys

import sluice_agent as sa

GRID = 10  # frames: cut points of the job file
GRACE = 1.0  # seconds, of the job file
PROBE = 2.0  # seconds that the first piece is given: who promises too little time is believed less
LONGEST = 4.0  # seconds: what one failure costs at most, and how long others wait


class Model:
    """Seconds that a frame takes at speed 1, its share of the start included: the upper quartile of what the latest pieces took,
    and a tenth more."""

    def __init__(self, frame=0.005):
        self.frame = frame  # as declared
        self.seen = []
        self.margin = 1  # what plans are multiplied by after pieces that came to nothing

    def missed(self):
        """A piece came to nothing in its time, so it was too short by any factor: the next one gets twice as much."""
        self.margin = min(2 * self.margin, 64)

    def learn(self, frames, seconds):
        self.margin = max(self.margin / 2, 1)
        self.seen = (self.seen + [seconds / frames])[-8:]
        self.frame = 1.1 * sorted(self.seen)[len(self.seen) * 3 // 4]

    def seconds(self, frames, speed):
        return self.margin * frames * self.frame / speed

    def frames(self, seconds, speed):
        """How many frames are done in so many seconds, on the grid."""
        return int(max(0, seconds) * speed / self.frame / self.margin) // GRID * GRID


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
            room = min(w.length - GRACE, LONGEST)
            most = GRID  # nothing is known yet: a short one tells
            if self.model.seen:
                most = max(GRID, self.model.frames(room, w.speed))
            n = min(most, end - first)
            if n <= 0 or room <= 0:
                continue
            free[0] = (first + n, end)  # another window gets other frames, so that both can be won
            # The whole, and half of it: both begin with the window, so only one of them can be sold.
            for part in {n, n // 2 // GRID * GRID} - {0}:
                run = self.model.seconds(part, w.speed) if self.model.seen else PROBE * self.model.margin
                if run <= w.length - GRACE:
                    yield sa.Variant(w, first, first + part, run=run, score=min(1.0, part / call.left))

    def remember(self, window):
        self.speeds[window.id] = window.speed
        while len(self.speeds) > 1000:
            del self.speeds[next(iter(self.speeds))]

    def told(self, notice):
        # A piece that ran into its end was planned too short, and says so: what it did, in the time that it had.
        if notice.kind == "concluded" and notice.outcome in ("done", "yielded", "deadline") and notice.to > notice.from_:
            self.model.learn(notice.to - notice.from_, notice.ran * self.speeds.get(notice.window, 1.0))
            what = (notice.to - notice.from_, notice.ran, notice.outcome, 1000 * self.model.frame)
            print("%d frames in %.2f s, %s; now %.1f ms a frame" % what, flush=True)
        elif notice.kind == "concluded" and notice.outcome in ("failed", "yielded", "deadline"):
            self.model.missed()
        elif notice.kind == "denied":
            print("denied: " + notice.text, flush=True)


if __name__ == "__main__":
    agent = Agent(Model())
    name = sys.argv[1] if len(sys.argv) > 1 else "frames"
    sa.serve(name, os.environ["SLUICE_AGENT_KEY"], agent.propose, agent.told, log=lambda text: print(text, file=sys.stderr, flush=True))
