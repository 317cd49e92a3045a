"""The agent of an external job: a program of its owner's that says which pieces of the job it would run where.

One file, standard library only, Python 3.8 or later. Copy it next to your program.

    import os
    import sluice_agent as sa

    def propose(call):
        for w in call.windows:
            first, end = call.free[0]
            n = min(end - first, int((w.length - 5) * w.speed / 2.0))     # a step takes 2 s, a checkpoint 5
            if n > 0:
                yield sa.Variant(w, first, first + n, run=2.0 * n / w.speed, wall=2.0 * n / w.speed + 5, score=n / call.left)

    sa.serve("train", os.environ["SLUICE_AGENT_KEY"], propose)

`sluice agent key JOB` prints the key. It opens one job's negotiation and nothing else.

A variant is complete: what is sold runs and counts even if the agent is gone by then. The scheduler verifies every variant
again, and holds what is declared against what is observed. An agent that is slow or silent loses windows and harms nobody.
Under mechanism sja the same program signals first and then cuts: look at call.wanted only to save work, or to decline.
Two variants of one answer in one window must overlap in time or have disjoint ranges, or both could be sold.
"""

import calendar
import http.client
import json
import os
import random
import re
import ssl
import time
import urllib.parse

__all__ = ["Call", "KeyRefused", "Notice", "Refused", "Superseded", "Variant", "Window", "serve"]

_PATH = "/sluice.v1alpha1.SluiceService/Negotiate"
_WAIT = 30  # seconds that one call waits for an event; the daemon allows no more
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 5.0


class KeyRefused(Exception):
    """The key is not this job's, or there is no such external job any more."""


class Superseded(Exception):
    """Another agent of this job has come, and the newest counts."""


class Refused(Exception):
    """What was said is not valid; the message names every problem. Nothing of it was looked at."""


class _Again(Exception):
    """The daemon could not be asked. forgotten: it knows the session no more."""

    def __init__(self, why, forgotten=False):
        super().__init__(why)
        self.forgotten = forgotten


class Window:
    """One gap on offer.

    id, slice, profile   which
    speed                how fast the job runs there; 1.0 is the speed its run times are declared for
    memory               bytes that the slice has
    start, end           Unix time in seconds
    length               seconds; a piece with its restore, its checkpoint and the job's grace must fit
    open                 nothing is known to come at its end, which is only as far as windows are sold: propose no late starts
                         in it, they gain nothing and can be proposed again when their time has come
    """

    def __init__(self, message):
        self.id = int(message["window"])
        self.slice, self.profile = message.get("slice", ""), message.get("profile", "")
        self.speed = int(message.get("speed", 1000)) / 1000
        self.memory = int(message.get("memoryBytes", 0))
        self._start, end = _nanoseconds(message["start"]), _nanoseconds(message["end"])
        self.start, self.end, self.length = self._start / 1e9, end / 1e9, (end - self._start) / 1e9
        self.open = bool(message.get("open"))


class Call:
    """A round of the market: windows on offer, and the work that could be done in them.

    round      its number
    wanted     what is asked for: "bids" (mechanism jasda: variants compete), "interest" (mechanism sja: which windows the job could
               use; Variant(window) is enough), or "subjob" (mechanism sja: the job was picked for the one window; the first piece
               that fits is sold, and no piece declines)
    closes     Unix time at which it is cleared at the latest, by the daemon's clock
    most       so many variants are looked at for each window
    free       the units for sale as (from, to), in order; of a chain only the first stretch, from its beginning
    left       units that are neither done nor sold
    first      nothing has been committed yet: a piece restores nothing
    memory_scale  what memory kills have taught to multiply the job's profile by; 1.0 for as declared
    pace       how long subjobs take over what was planned for them: the daemon adds that to a plan before it looks whether it
               fits; 1.0 for as declared
    windows    a list of Window
    """

    def __init__(self, message):
        self.round = int(message["round"])
        self.wanted = message.get("wanted") or "bids"
        self.closes = _nanoseconds(message["closes"]) / 1e9 if message.get("closes") else None
        self.most, self.left, self.first = int(message.get("most", 0)), int(message.get("left", 0)), bool(message.get("first"))
        self.free = [(int(r.get("from", 0)), int(r.get("to", 0))) for r in message.get("free", [])]
        self.memory_scale = (int(message.get("memoryScale", 0)) or 1000) / 1000
        self.pace = (int(message.get("pace", 0)) or 1000) / 1000
        self.windows = [Window(w) for w in message.get("windows", [])]


class Variant:
    """One piece that the job would run: units [from_, to) in a window. With its window alone a signal of interest.

    run      seconds of the work itself, more than 0
    wall     seconds with restore and checkpoint; None: there are none
    after    seconds after the window's start at which it begins
    memory   bytes that it needs; what the job file's profile says counts where that is more
    option   one of the job's options, empty for none
    score    what it is worth to the job, 0 to 1
    id       the agent's own number, to know it again in notices; None: numbered from 1 within the answer
    """

    def __init__(self, window, from_=None, to=None, run=None, wall=None, after=0.0, memory=0, option="", score=1.0, id=None):
        self.window, self.from_, self.to, self.run, self.wall = window, from_, to, run, wall
        self.after, self.memory, self.option, self.score, self.id = after, memory, option, score, id

    def _message(self, number):
        if self.from_ is None and self.run is None:
            signal = {"id": number if self.id is None else self.id, "window": str(self.window.id), "memoryBytes": str(int(self.memory))}
            if self.wall is not None:
                signal["wall"] = "%.9fs" % self.wall
            return signal
        wall = self.run if self.wall is None else max(self.wall, self.run)
        return {
            "id": number if self.id is None else self.id,
            "window": str(self.window.id),
            "range": {"from": str(self.from_), "to": str(self.to)},
            "start": _stamp(self.window._start + round(self.after * 1e9)),
            "run": "%.9fs" % self.run,
            "wall": "%.9fs" % wall,
            "memoryBytes": str(int(self.memory)),
            "option": self.option,
            "score": self.score,
        }


class Notice:
    """What became of a variant, or of a piece that was won.

    kind             awarded (it has won and its node is asked: it runs unless the node refuses, of which no notice comes),
                     planned (it begins too late to be sold now; the window is announced again), lost, denied (text says
                     which rule it breaks), or concluded (a piece that was won has ended)
    round, window, variant, text
    score, clearing  what the scheduler made of the declared score, and what the winner that was in its way had
    subjob, from_, to, outcome, ran, peak
                     of a piece that has ended: its id, the units that count, how it ended (done, yielded, failed, memory,
                     deadline, ...), the seconds it ran, and its peak in bytes
    """

    def __init__(self, round, message):
        self.round, self.kind = round, _word(message, "kind")
        self.window, self.variant, self.text = int(message.get("window", 0)), int(message.get("variant", 0)), message.get("text", "")
        self.score, self.clearing = float(message.get("score", 0)), float(message.get("clearing", 0))
        units = message.get("range") or {}
        self.from_, self.to = int(units.get("from", 0)), int(units.get("to", 0))
        self.subjob, self.outcome = message.get("subjob", ""), _word(message, "outcome")
        self.ran = float((message.get("ran") or "0s")[:-1])
        self.peak = int(message.get("peakMemoryBytes", 0))


def _word(message, key):
    """A value of the API as people write it: START_FAILED is start-failed; empty if it is not there."""
    word = message.get(key, "")
    return "" if word.endswith("_UNSPECIFIED") else word.lower().replace("_", "-")


def serve(job, key, propose, told=None, addr=None, context=None, log=None):
    """Answers the calls to a job's rounds with what propose returns until the job is over, and then returns.

    propose(call)  gives Variants, as a list or one after another; none says that the job is not interested. It is called for
                   one round after another; one that takes longer than the round waits (200 ms unless the daemon is set
                   otherwise) loses the round.
    told(notice)   hears what became of them.
    addr           the daemon: host:port of this machine, or a URL. Default: SLUICE_SERVER, else 127.0.0.1:7117.
    context        an ssl.SSLContext for https.
    log(text)      hears what goes wrong and is tried again, and what the daemon did not take.

    When the daemon can not be reached, or was started again, it tries again without end. Raises KeyRefused, Superseded, Refused.
    """
    log = log or (lambda text: None)
    wire = _Wire(addr or os.environ.get("SLUICE_SERVER") or "127.0.0.1:7117", context)
    session, answers, pause = "0", [], _FIRST_PAUSE
    try:
        while True:
            said = {"job": job, "session": session, "wait": "%ds" % _WAIT}
            if session == "0":
                said["key"] = key
            else:
                said["answers"] = answers
            answers = []  # if they do not arrive now it is too late for them
            try:
                heard = wire.call(said)
            except _Again as why:
                if why.forgotten:
                    session = "0"
                log("the daemon could not be asked, trying again: %s" % why)
                time.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, _LAST_PAUSE)
                continue
            pause, session = _FIRST_PAUSE, heard["session"]
            for note in heard.get("notes", []):
                log(note)
            if int(heard.get("dropped", 0)):
                log("too slow: %s calls and notices were dropped" % heard["dropped"])
            for event in heard.get("events", []):
                try:
                    call, notices = _understood(event)
                except (AttributeError, KeyError, TypeError, ValueError) as e:
                    log("passed over what is no call and no notice: %s: %s" % (type(e).__name__, e))
                    continue
                if call:
                    answers.append({"round": str(call.round), "variants": [v._message(i + 1) for i, v in enumerate(propose(call) or ())]})
                for n in notices if told else ():
                    told(n)
            if heard.get("over"):
                return
    finally:
        wire.close()


def _understood(event):
    """The call that an event is, or its notices. One of a kind that is not known yet is neither."""
    if "call" in event:
        return Call(event["call"]), ()
    heard = event.get("told", {})
    return None, [Notice(int(heard.get("round", 0)), n) for n in heard.get("notices", [])]


class _Wire:
    """One connection that is kept, and made again when it breaks."""

    def __init__(self, addr, context):
        url = urllib.parse.urlsplit(addr if "://" in addr else "http://" + addr)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError("addr is %r; want host:port or a URL" % addr)
        self.url, self.context, self.connection = url, context, None

    def call(self, message):
        body = json.dumps(message).encode()
        try:
            if self.connection is None:
                self.connection = self._connect()
            self.connection.request("POST", _PATH, body, {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            status, text = response.status, response.read()
        except (OSError, http.client.HTTPException) as e:
            self.close()
            raise _Again("%s: %s" % (self.url.netloc, e or type(e).__name__)) from e
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            answer = {}  # something in between has spoken
        if status == 200 and "session" in answer:
            return answer
        code, why = answer.get("code"), answer.get("message", "status %d" % status)
        if code in ("permission_denied", "unauthenticated"):
            raise KeyRefused(why)
        if code == "aborted":
            raise Superseded(why)
        if code in ("invalid_argument", "unimplemented"):
            raise Refused(why)
        raise _Again(why, forgotten=code == "not_found")

    def _connect(self):
        limit = _WAIT + 10
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=limit, context=self.context or ssl.create_default_context())
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=limit)

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z")


def _nanoseconds(text):
    """A timestamp as nanoseconds since 1970: seconds as a float would lose some."""
    m = _RFC3339.fullmatch(text)
    if not m:
        raise ValueError("%r is no timestamp" % text)
    whole = calendar.timegm(tuple(int(g) for g in m.groups()[:6]))
    return whole * 10**9 + int((m.group(7) or "0").ljust(9, "0"))


def _stamp(nanoseconds):
    whole, part = divmod(nanoseconds, 10**9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + ".%09dZ" % part
