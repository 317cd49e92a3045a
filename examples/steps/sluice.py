"""A program's side of Sluice: which part of the job is mine, until when, and how far I have come.

One file, standard library only, Python 3.8 or later: copy it next to your program. It reads the environment that
Sluice gives to every subjob, keeps the progress file and the checkpoint folder as the contract wants them, and knows
nothing else; it opens no socket and starts no thread.

    import sluice

    job = sluice.Subjob.from_env()
    for unit in range(job.from_, job.to):
        if job.should_stop():
            job.yield_()                       # what was reported counts, the rest is run again elsewhere
        work(unit, job.output_path("part-%d" % unit))
        job.progress(unit + 1)

A job of kind `steps` resumes from what the last committed subjob left, and reports with a checkpoint:

    state = job.resume(pickle.load) or State()
    for step in range(job.from_, job.to):
        state = train(state)
        if (step + 1) % 500 == 0 or job.should_stop(need=15):
            job.checkpoint(step + 1, lambda f: pickle.dump(state, f))
            if job.should_stop(need=15):
                job.yield_()

A program that stays between subjobs (`resident: true` in the job file) is a loop over pieces; its start is paid once:

    model = load()
    for piece in sluice.pieces():
        for unit in range(piece.from_, piece.to):
            if piece.should_stop():
                piece.yield_()
                break
            work(model, unit, piece.output_path("part-%d" % unit))
            piece.progress(unit + 1)

"Once" is a promise about committed output and checkpoints. Anything a program does elsewhere can happen twice.
"""

import atexit
import collections
import datetime
import json
import os
import re
import signal
import sys
import time

__all__ = ["ContractError", "EXIT_YIELD", "Notice", "Piece", "Subjob", "TRUNCATED", "YIELD", "pieces"]

#: The exit status that says: I stopped early, what I reported counts, run the rest again.
EXIT_YIELD = 85

#: Kinds of notices: asked to end by `until` (SIGTERM comes with it); the lease ends earlier than was promised, at `until`; it
#: is suspended since its node is short of memory; it was suspended, and its lease did not wait.
YIELD, TRUNCATED, SUSPENDED, RESUMED = "yield", "truncated", "suspended", "resumed"

_REQUIRED = ("SLUICE_JOB", "SLUICE_SUBJOB", "SLUICE_FROM", "SLUICE_TO", "SLUICE_DEADLINE", "SLUICE_PROGRESS_FILE")


class ContractError(Exception):
    """The environment is not that of a subjob, or the program asked for something that the contract excludes."""


class Notice(collections.namedtuple("Notice", "kind until uptime why sequence")):
    """What was done to this subjob, as Subjob.notice() tells it.

    kind      YIELD, TRUNCATED, SUSPENDED, RESUMED, or a word that this version does not know and that may be left alone
    until     Unix time in seconds at which the process is killed if it still runs
    uptime    the same in seconds since the machine was started, which no setting of the clock moves
    why       for people
    sequence  numbers what this subjob was told, from 1
    """

    __slots__ = ()


class Subjob:
    """The piece of a job that this process runs: units [from_, to) until deadline.

    job            the job's name
    subjob         the subjob's id
    from_, to      the half-open range of units; `to` can grow if the job asked for continuation
    deadline       Unix time in seconds at which the lease ends; SIGTERM comes the job's grace before it. Can move in both directions
    memory         bytes that the slice has for the whole process tree, 0 if not given
    resume_dir     folder with the last committed checkpoint, read-only; None at first
    checkpoint_dir this subjob's own folder for checkpoints, None if not given
    output_dir     this subjob's own folder for output, None if not given
    """

    def __init__(self, env, clock=time.time, uptime=None):
        self._clock = clock
        self._uptime = uptime or _uptime
        self._stop = False
        self._lease_seen = None
        self._notice = None
        self._notice_seen = None
        problems = ["%s is not set" % name for name in _REQUIRED if not env.get(name)]
        self.job = env.get("SLUICE_JOB", "")
        self.subjob = env.get("SLUICE_SUBJOB", "")
        self.from_ = _integer(env, "SLUICE_FROM", problems)
        self.to = _integer(env, "SLUICE_TO", problems)
        self.memory = _integer(env, "SLUICE_MEMORY_BYTES", problems)
        self.deadline = 0.0
        if env.get("SLUICE_DEADLINE"):
            try:
                self.deadline = parse_time(env["SLUICE_DEADLINE"])
            except ValueError as e:
                problems.append("SLUICE_DEADLINE: %s" % e)
        self._progress_file = env.get("SLUICE_PROGRESS_FILE", "")
        self._lease_file = env.get("SLUICE_LEASE_FILE") or None
        self._notice_file = env.get("SLUICE_NOTICE_FILE") or None
        self.resume_dir = env.get("SLUICE_RESUME_DIR") or None
        self.checkpoint_dir = env.get("SLUICE_CHECKPOINT_DIR") or None
        self.output_dir = env.get("SLUICE_OUTPUT_DIR") or None
        if problems:
            raise ContractError("this is not the environment of a Sluice subjob: %s" % "; ".join(problems))
        self._done = self.from_
        self.refresh()

    @classmethod
    def from_env(cls, signals=(signal.SIGTERM,)):
        """Reads this process's environment, and from now on takes the given signals as a request to stop.

        Every problem is named in one ContractError. Pass the job's warn signal too if it has one (signal.SIGUSR1), or
        an empty tuple to leave signals alone, SIGTERM's default action included; handlers can only be set from the main thread.
        """
        subjob = cls(os.environ)
        for number in signals:
            signal.signal(number, subjob._on_signal)
        return subjob

    def _on_signal(self, number, frame):
        self._stop = True

    def refresh(self):
        """Rereads the lease file if it was replaced: `to` and `deadline` may have moved. Cheap; called by remaining()."""
        if self._lease_file is None:
            return
        try:
            stat = os.stat(self._lease_file)
            seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if seen == self._lease_seen:
                return
            with open(self._lease_file, encoding="utf-8") as f:
                lease = json.load(f)
            to, deadline = int(lease["to"]), parse_time(lease["deadline"])
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError) as e:
            raise ContractError("lease file %s: want {\"to\": N, \"deadline\": RFC 3339}: %r" % (self._lease_file, e))
        self._lease_seen, self.to, self.deadline = seen, to, deadline

    def notice(self):
        """What was done to this subjob and holds now, as a Notice; None if nothing.

        It says what a signal can't, and needs no handler; SIGTERM comes all the same, and ends a program that neither
        handles nor ignores it. Cheap enough to be asked after every step: while nothing has happened it is one call of stat.
        """
        if self._notice_file is None:
            return None
        try:
            stat = os.stat(self._notice_file)
            seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if seen == self._notice_seen:
                return self._notice
            with open(self._notice_file, encoding="utf-8") as f:
                n = json.load(f)
            until = parse_time(n["until"])
            self._notice = Notice(str(n["kind"]), until, float(n["uptime"]), str(n["why"]), int(n["sequence"]))
        except FileNotFoundError:
            self._notice = self._notice_seen = None
            return None
        except (ValueError, KeyError, TypeError) as e:
            raise ContractError("notice file %s: %r" % (self._notice_file, e))
        self._notice_seen = seen
        return self._notice

    def remaining(self):
        """Seconds until the process is killed: to the deadline, or less if it was asked to end. Negative after it."""
        self.refresh()
        left = self.deadline - self._clock()
        n = self.notice()
        if n is not None and n.kind in (YIELD, TRUNCATED):
            left = min(left, n.uptime - self._uptime())
        return left

    def should_stop(self, need=1.0):
        """Whether to stop now: it was asked to, or less than `need` seconds remain (what a checkpoint takes, say)."""
        if self._stop or self.remaining() < need:
            return True
        n = self.notice()
        return n is not None and n.kind == YIELD

    def progress(self, n, checkpoint=False):
        """Reports that every unit before n is complete: n in [from_, to], never less than reported before.

        It is what counts, however the process ends. A steps job's progress counts only with a whole checkpoint that
        belongs to it; use checkpoint(), which does both in the right order.
        """
        if n > self.to:
            self.refresh()  # perhaps the lease was extended
        if not self._done <= n <= self.to:
            raise ContractError("progress %d: want a number from %d to %d" % (n, self._done, self.to))
        text = json.dumps({"progress": n, "checkpoint": bool(checkpoint)})
        _replace(self._progress_file, lambda f: f.write(text.encode()), sync=checkpoint)
        self._done = n

    def checkpoint(self, n, write):
        """Leaves a checkpoint that belongs to progress n, and reports it.

        write is called with a binary file. The file gets its name when it is on disk, then the progress is reported,
        and only then the checkpoint before it is removed: at no moment does the reported progress lack its checkpoint.
        """
        if self.checkpoint_dir is None:
            raise ContractError("SLUICE_CHECKPOINT_DIR is not set: this subjob has no place for a checkpoint")
        if not self._done <= n <= self.to:
            raise ContractError("checkpoint %d: want a number from %d to %d" % (n, self._done, self.to))
        name = _checkpoint_name(n)
        _replace(os.path.join(self.checkpoint_dir, name), write, sync=True)
        self.progress(n, checkpoint=True)
        for other in os.listdir(self.checkpoint_dir):
            if other != name and re.fullmatch(r"checkpoint-\d+", other):
                os.remove(os.path.join(self.checkpoint_dir, other))

    def resume(self, read):
        """Returns read(binary file) of the committed checkpoint that belongs to from_, or None at the job's start."""
        if self.resume_dir is None:
            return None
        path = os.path.join(self.resume_dir, _checkpoint_name(self.from_))
        try:
            f = open(path, "rb")
        except FileNotFoundError:
            raise ContractError("%s is missing: the committed checkpoint was not left with checkpoint()" % path)
        with f:
            return read(f)

    def output_path(self, name):
        """The path of an output file of this name, with its folders made. Output is published when it is committed."""
        if self.output_dir is None:
            raise ContractError("SLUICE_OUTPUT_DIR is not set: this subjob has no place for output")
        base = os.path.realpath(self.output_dir)
        path = os.path.realpath(os.path.join(base, name))
        if os.path.commonpath([base, path]) != base or path == base:
            raise ContractError("output %r: want a name inside the output folder" % name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def yield_(self):
        """Ends the program with status 85: stopped early on purpose, what was reported counts. Raises SystemExit."""
        sys.stdout.flush()
        sys.exit(EXIT_YIELD)


class Piece(Subjob):
    """A subjob of a program that stays: what a Subjob has, and memory_bytes (the same as memory).

    The piece is over when the loop over pieces() comes back for the next: it is done, unless yield_() or fail() was called.
    """

    def __init__(self, env, clock=time.time, uptime=None):
        Subjob.__init__(self, env, clock, uptime)
        self.memory_bytes = self.memory
        self._exit, self._error = 0, ""

    def yield_(self):
        """Says that it stopped early on purpose: what was reported counts. Go on to the next piece then: this does not leave the loop."""
        self._exit, self._error = EXIT_YIELD, ""

    def fail(self, text, exit=1):
        """Says that it has failed, and why. The program is ended after that, and started anew for the next subjob."""
        self._exit, self._error = exit, str(text)


_NAMES = {
    "job": "SLUICE_JOB",
    "subjob": "SLUICE_SUBJOB",
    "from": "SLUICE_FROM",
    "to": "SLUICE_TO",
    "deadline": "SLUICE_DEADLINE",
    "memoryBytes": "SLUICE_MEMORY_BYTES",
    "outputDir": "SLUICE_OUTPUT_DIR",
    "checkpointDir": "SLUICE_CHECKPOINT_DIR",
    "resumeDir": "SLUICE_RESUME_DIR",
    "progressFile": "SLUICE_PROGRESS_FILE",
    "leaseFile": "SLUICE_LEASE_FILE",
    "noticeFile": "SLUICE_NOTICE_FILE",
}


class _Ended(BaseException):
    """The program was told to end while it waited for a piece."""


def pieces(signals=(signal.SIGTERM,)):
    """The pieces of this program, one after another, until there are no more: a generator of Piece.

    Call it once, from the main thread, when the program is ready for work. From then on stdout is stderr, for Python and for libraries and
    children: the real one speaks with Sluice. The given signals ask the present piece to stop (should_stop()), and end the loop between
    two. A program that is started for one subjob (no `resident: true`) gets that one as its only piece, and exits as the piece says.
    """
    now = []

    def asked(number, frame):
        for piece in now:
            piece._stop = True
        if not now:
            raise _Ended()

    def listen():
        for number in signals:
            signal.signal(number, asked)

    if not os.environ.get("SLUICE_RESIDENT"):
        piece = Piece(os.environ)
        now.append(piece)
        listen()
        try:
            yield piece
        except GeneratorExit:  # the loop was left: what the piece says counts when the program ends
            if piece._exit:
                atexit.register(_end_as, piece)
            raise
        sys.stdout.flush()
        if piece._error:
            print(piece._error, file=sys.stderr, flush=True)
        if piece._exit:
            sys.exit(piece._exit)
        return
    sys.stdout.flush()
    lines, said = os.fdopen(os.dup(0), "rb"), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    try:
        listen()
        _say(said, {"ready": True})
        while True:
            line = lines.readline()
            if not line.endswith(b"\n"):
                return
            told = json.loads(line.decode())
            piece = Piece({name: str(told[key]) for key, name in _NAMES.items() if told.get(key) is not None})
            now.append(piece)
            try:
                yield piece
            except GeneratorExit:  # the loop was left: without a word of the piece only what was reported counts
                if piece._exit:
                    _answer(said, piece)
                raise
            _answer(said, piece)
            now.clear()
    except _Ended:
        return


def _end_as(piece):
    sys.stdout.flush()
    if piece._error:
        print(piece._error, file=sys.stderr)
    sys.stderr.flush()
    os._exit(piece._exit)


def _answer(fd, piece):
    sys.stdout.flush()
    sys.stderr.flush()
    answer = {"subjob": piece.subjob, "exit": piece._exit}
    if piece._error:
        answer["error"] = piece._error
    _say(fd, answer)


def _say(fd, what):
    data = json.dumps(what).encode() + b"\n"
    while data:
        data = data[os.write(fd, data):]


def parse_time(text):
    """Unix time in seconds of an RFC 3339 time with any number of decimals, which Python 3.8 cannot read itself."""
    m = re.fullmatch(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", text)
    if m is None:
        raise ValueError("%r is not an RFC 3339 time" % text)
    zone = "+00:00" if m[4] in "Zz" else m[4]
    return datetime.datetime.fromisoformat(m[1] + "T" + m[2] + zone).timestamp() + float(m[3] or 0)


def _uptime():
    """Seconds since the machine was started, also those in which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _integer(env, name, problems):
    text = env.get(name)
    if not text:
        return 0
    if re.fullmatch(r"\d+", text) is None:
        problems.append("%s is %r, want a whole number" % (name, text))
        return 0
    return int(text)


def _checkpoint_name(n):
    return "checkpoint-%d" % n


def _replace(path, write, sync):
    """Writes a file beside path and renames it there, so that nobody sees half of it."""
    temporary = "%s.%d.tmp" % (path, os.getpid())
    try:
        with open(temporary, "wb") as f:
            write(f)
            if sync:
                f.flush()
                os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise
    if sync:
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
