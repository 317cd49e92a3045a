"""An agent for tests: agent.py JOB SECONDS_A_UNIT LONGEST_PIECE. It says on stdout what it hears, one line each.

It asks for far more time than its pieces take: a piece gives back what it does not need, and a busy machine may be slow to start it.
"""

import os
import sys

import sluice_agent as sa

SPARE = 20.0  # seconds beside the work

job, unit, longest = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])


def say(*what):
    print(*what, flush=True)


def propose(call):
    say("called")
    free = list(call.free)
    for w in call.windows:
        if not free:
            return
        first, end = free[0]
        n = min(longest, end - first, int((w.length - 1) * w.speed / unit))
        if n > 0:
            run = n * unit / w.speed
            yield sa.Variant(w, first, first + n, run=run, wall=min(run + SPARE, w.length - 1), score=n / call.left)
            free[0] = (first + n, end)
            if first + n == end:
                free.pop(0)


def told(notice):
    say(notice.kind, notice.from_, notice.to, notice.outcome, notice.text)


try:
    sa.serve(job, os.environ["SLUICE_AGENT_KEY"], propose, told, log=lambda text: say("log", text))
    say("over")
except Exception as e:
    say(type(e).__name__, e)
