"""Tests of sluice.py: python3 -m unittest, or through `make test`."""

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

import sluice

HERE = os.path.dirname(os.path.abspath(__file__))


class SubjobCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.now = 1000.0
        for name in ("checkpoint", "output"):
            os.mkdir(os.path.join(self.dir, name))
        self.env = {
            "SLUICE_JOB": "train",
            "SLUICE_SUBJOB": "3-17",
            "SLUICE_FROM": "100",
            "SLUICE_TO": "200",
            "SLUICE_DEADLINE": "1970-01-01T00:17:40Z",  # 1060 s
            "SLUICE_MEMORY_BYTES": "1048576",
            "SLUICE_CHECKPOINT_DIR": self.path("checkpoint"),
            "SLUICE_OUTPUT_DIR": self.path("output"),
            "SLUICE_PROGRESS_FILE": self.path("progress.json"),
            "SLUICE_LEASE_FILE": self.path("lease.json"),
            "SLUICE_NOTICE_FILE": self.path("notice.json"),
        }

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def subjob(self, **env):
        merged = dict(self.env, **env)
        env = {k: v for k, v in merged.items() if v is not None}
        return sluice.Subjob(env, clock=lambda: self.now, uptime=lambda: self.now - 900)

    def reported(self):
        with open(self.path("progress.json")) as f:
            return json.load(f)


class Environment(SubjobCase):
    def test_reads_everything(self):
        s = self.subjob()
        self.assertEqual((s.job, s.subjob, s.from_, s.to, s.memory), ("train", "3-17", 100, 200, 1048576))
        self.assertEqual(s.deadline, 1060)
        self.assertIsNone(s.resume_dir)

    def test_names_all_problems_at_once(self):
        with self.assertRaises(sluice.ContractError) as e:
            self.subjob(SLUICE_JOB=None, SLUICE_FROM="ten", SLUICE_DEADLINE="soon")
        for want in ("SLUICE_JOB is not set", "SLUICE_FROM is 'ten'", "SLUICE_DEADLINE: 'soon'"):
            self.assertIn(want, str(e.exception))

    def test_times(self):
        for text, want in (
            ("1970-01-01T00:00:00Z", 0.0),
            ("1970-01-01T01:00:00.25+01:00", 0.25),
            ("1970-01-01T00:00:01.123456789Z", 1.123456789),
            ("2026-02-28T23:59:59-05:30", 1772342999.0),
        ):
            self.assertEqual(sluice.parse_time(text), want, text)
        for text in ("", "1970-01-01", "1970-01-01T00:00:00", "1970-13-01T00:00:00Z", "1970-01-01T00:00:00Zx"):
            with self.assertRaises(ValueError, msg=text):
                sluice.parse_time(text)


class Progress(SubjobCase):
    def test_is_replaced_whole(self):
        s = self.subjob()
        s.progress(150)
        self.assertEqual(self.reported(), {"progress": 150, "checkpoint": False})
        first = os.stat(self.path("progress.json")).st_ino
        s.progress(200, checkpoint=True)
        self.assertEqual(self.reported(), {"progress": 200, "checkpoint": True})
        self.assertNotEqual(os.stat(self.path("progress.json")).st_ino, first)
        self.assertEqual([n for n in os.listdir(self.dir) if n.endswith(".tmp")], [])

    def test_stays_in_range_and_never_goes_back(self):
        s = self.subjob()
        s.progress(150)
        for n in (99, 149, 201):
            with self.assertRaises(sluice.ContractError, msg=n):
                s.progress(n)
        self.assertEqual(self.reported()["progress"], 150)

    def test_may_go_on_in_an_extended_lease(self):
        s = self.subjob()
        self.lease(300, "1970-01-01T00:20:00Z")
        s.progress(300)
        self.assertEqual(self.reported()["progress"], 300)

    def lease(self, to, deadline):
        temporary = self.path("lease.new")
        with open(temporary, "w") as f:
            json.dump({"to": to, "deadline": deadline}, f)
        os.replace(temporary, self.path("lease.json"))


class Deadline(SubjobCase):
    lease = Progress.lease

    def test_remaining(self):
        s = self.subjob()
        self.assertEqual(s.remaining(), 60)
        self.assertFalse(s.should_stop(need=60))
        self.assertTrue(s.should_stop(need=60.5))
        self.now = 1059.5
        self.assertTrue(s.should_stop())

    def test_follows_the_lease(self):
        s = self.subjob()
        self.lease(250, "1970-01-01T00:20:00Z")
        self.assertEqual((s.remaining(), s.to), (200, 250))
        self.lease(180, "1970-01-01T00:17:00Z")  # truncated
        self.assertEqual((s.remaining(), s.to), (20, 180))

    def test_a_broken_lease_file_is_said(self):
        s = self.subjob()
        with open(self.path("lease.json"), "w") as f:
            f.write("{}")
        with self.assertRaises(sluice.ContractError):
            s.remaining()


class Notices(SubjobCase):
    def told(self, **what):
        said = dict({"sequence": 1, "kind": "yield", "until": "1970-01-01T00:16:45Z", "uptime": 105.0, "why": "drained"}, **what)
        with open(self.path("notice.new"), "w") as f:
            json.dump(said, f)
        os.replace(self.path("notice.new"), self.path("notice.json"))

    def test_nothing_was_done(self):
        s = self.subjob()
        self.assertIsNone(s.notice())
        self.assertIsNone(self.subjob(SLUICE_NOTICE_FILE=None).notice())
        self.assertFalse(s.should_stop())

    def test_asked_to_yield(self):
        s = self.subjob()
        self.told()
        self.assertEqual(s.notice(), sluice.Notice("yield", 1005.0, 105.0, "drained", 1))
        self.assertTrue(s.should_stop(need=0))
        self.assertEqual(s.remaining(), 5)  # not the 60 of the lease
        self.now += 3
        self.assertEqual(s.remaining(), 2)

    def test_the_wall_clock_is_set(self):
        s = sluice.Subjob(self.env, clock=lambda: 5.0, uptime=lambda: 104.0)
        self.told()
        self.assertEqual(s.remaining(), 1)

    def test_truncated_is_no_request_to_stop_yet(self):
        s = self.subjob()
        self.told(kind="truncated", uptime=130.0)
        self.assertFalse(s.should_stop(need=30))
        self.assertTrue(s.should_stop(need=30.5))
        os.remove(self.path("notice.json"))  # taken back
        self.assertIsNone(s.notice())
        self.assertEqual(s.remaining(), 60)

    def test_what_a_later_version_tells_is_passed_on(self):
        s = self.subjob()
        self.told(kind="tickled", sequence=3, more=1)
        self.assertEqual(s.notice().kind, "tickled")
        self.assertEqual(s.remaining(), 60)
        self.assertFalse(s.should_stop())

    def test_a_broken_notice_file_is_said(self):
        s = self.subjob()
        for text in ("{", "{}", '{"kind": "yield"}'):
            with open(self.path("notice.json"), "w") as f:
                f.write(text)
            with self.assertRaises(sluice.ContractError, msg=text):
                s.notice()

    def test_is_read_once(self):
        s = self.subjob()
        self.told()
        first = s.notice()
        self.assertIs(s.notice(), first)
        self.told(sequence=2, why="reclaimed")
        self.assertEqual((s.notice().sequence, s.notice().why), (2, "reclaimed"))


class Checkpoints(SubjobCase):
    def test_round_trip(self):
        s = self.subjob()
        s.checkpoint(150, lambda f: pickle.dump([1.5, 2], f))
        s.checkpoint(160, lambda f: pickle.dump([2.5, 3], f))
        self.assertEqual(os.listdir(self.path("checkpoint")), ["checkpoint-160"])
        self.assertEqual(self.reported(), {"progress": 160, "checkpoint": True})
        later = self.subjob(SLUICE_FROM="160", SLUICE_RESUME_DIR=self.path("checkpoint"))
        self.assertEqual(later.resume(pickle.load), [2.5, 3])

    def test_nothing_to_resume_at_first(self):
        self.assertIsNone(self.subjob().resume(pickle.load))

    def test_a_foreign_checkpoint_is_refused(self):
        s = self.subjob(SLUICE_RESUME_DIR=self.path("checkpoint"))
        with self.assertRaises(sluice.ContractError):
            s.resume(pickle.load)

    def test_reported_progress_never_lacks_its_checkpoint(self):
        s = self.subjob()
        s.checkpoint(150, lambda f: f.write(b"one"))

        def fails(f):
            f.write(b"half")
            raise OSError("disk full")

        with self.assertRaises(OSError):
            s.checkpoint(160, fails)
        self.assertEqual(os.listdir(self.path("checkpoint")), ["checkpoint-150"])
        self.assertEqual(self.reported(), {"progress": 150, "checkpoint": True})

    def test_the_old_one_is_there_until_the_new_one_is_reported(self):
        s = self.subjob()
        s.checkpoint(150, lambda f: f.write(b"one"))
        seen = []
        s.progress, progress = lambda *a, **k: (seen.append(sorted(os.listdir(self.path("checkpoint")))), progress(*a, **k)), s.progress
        s.checkpoint(160, lambda f: f.write(b"two"))
        self.assertEqual(seen, [["checkpoint-150", "checkpoint-160"]])


class Output(SubjobCase):
    def test_stays_inside(self):
        s = self.subjob()
        path = s.output_path("a/b.txt")
        with open(path, "w") as f:
            f.write("x")
        self.assertTrue(os.path.samefile(os.path.dirname(path), self.path("output", "a")))
        for name in ("", ".", "../x", "/etc/passwd", "a/../../x"):
            with self.assertRaises(sluice.ContractError, msg=name):
                s.output_path(name)


class Process(SubjobCase):
    """A real program: it works until it is told to stop, leaves a checkpoint, and yields."""

    PROGRAM = textwrap.dedent(
        """
        import sys, time
        import sluice
        job = sluice.Subjob.from_env()
        print("ready", flush=True)
        for step in range(job.from_, job.to):
            if job.should_stop():
                job.checkpoint(step, lambda f: f.write(b"%d" % step))
                job.yield_()
            time.sleep(0.02)
        """
    )

    def run_program(self, deadline, act):
        env = dict(self.env, PYTHONPATH=HERE, SLUICE_DEADLINE=deadline, SLUICE_TO="100000")
        p = subprocess.Popen([sys.executable, "-c", self.PROGRAM], env=env, stdout=subprocess.PIPE)
        try:
            self.assertEqual(p.stdout.readline(), b"ready\n")
            act(p)
            self.assertEqual(p.wait(timeout=20), sluice.EXIT_YIELD)
        finally:
            p.kill()
            p.stdout.close()
            p.wait()
        said = self.reported()
        self.assertTrue(said["checkpoint"])
        with open(self.path("checkpoint", "checkpoint-%d" % said["progress"]), "rb") as f:
            self.assertEqual(f.read(), b"%d" % said["progress"])

    def test_yields_on_sigterm(self):
        self.run_program("2999-01-01T00:00:00Z", lambda p: p.send_signal(signal.SIGTERM))

    def test_yields_on_a_notice_without_a_signal(self):
        def act(p):
            with open(self.path("notice.new"), "w") as f:
                f.write('{"sequence":1,"kind":"yield","until":"2999-01-01T00:00:00.000Z","uptime":1e12,"why":"drained"}\n')
            os.replace(self.path("notice.new"), self.path("notice.json"))

        self.run_program("2999-01-01T00:00:00Z", act)

    def test_yields_at_its_deadline(self):
        self.run_program("1999-01-01T00:00:00Z", lambda p: None)


class Pieces(unittest.TestCase):
    """Programs that stay, as processes of their own: this test is their supervisor."""

    PROGRAM = """
        import os, subprocess, sys
        import sluice
        print("at start")
        started = 0
        for piece in sluice.pieces():
            started += 1
            print("piece", started)
            sys.stdout.flush()
            subprocess.check_call(["sh", "-c", "echo from a child; cat"])
            with open(piece.output_path("n"), "w") as f:
                f.write("%d %d %d" % (started, piece.from_, piece.memory_bytes))
            piece.progress(piece.from_ + 1)
            if piece.to == 30:
                piece.yield_()
            if piece.to == 40:
                piece.fail("no luck")
            if piece.to == 60:
                piece.yield_()
                break
            if piece.to == 70:
                break
            if piece.to == 50:
                print("waits", flush=True)
                while not piece.should_stop():
                    pass
                piece.yield_()
    """

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.program = os.path.join(self.dir, "program.py")
        with open(self.program, "w") as f:
            f.write(textwrap.dedent(self.PROGRAM))

    def start(self, env):
        p = subprocess.Popen([sys.executable, "-B", self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=dict(env, PATH=os.environ["PATH"], PYTHONPATH=HERE))
        self.addCleanup(p.kill)
        for f in (p.stdin, p.stdout, p.stderr):
            self.addCleanup(f.close)
        return p

    def piece(self, n):
        out = os.path.join(self.dir, "out-%d" % n)
        os.mkdir(out)
        return {"job": "j", "subjob": "1-%d" % n, "from": 10 * n - 10, "to": 10 * n, "deadline": "2999-01-01T00:00:00.000Z",
                "memoryBytes": 1024, "outputDir": out, "checkpointDir": out, "progressFile": os.path.join(out, "progress.json"),
                "leaseFile": os.path.join(out, "lease.json"), "noticeFile": os.path.join(out, "notice.json")}

    def give(self, p, piece):
        p.stdin.write(json.dumps(piece).encode() + b"\n")
        p.stdin.flush()

    def heard(self, p):
        return json.loads(p.stdout.readline().decode())

    def test_takes_one_piece_after_another(self):
        p = self.start({"SLUICE_RESIDENT": "1"})
        self.assertEqual(p.stdout.readline(), b"at start\n")
        self.assertEqual(self.heard(p), {"ready": True})
        for n, want in ((1, {"exit": 0}), (2, {"exit": 0}), (3, {"exit": 85}), (4, {"exit": 1, "error": "no luck"})):
            piece = self.piece(n)
            self.give(p, piece)
            self.assertEqual(self.heard(p), dict(want, subjob=piece["subjob"]))
            with open(os.path.join(piece["outputDir"], "n")) as f:
                self.assertEqual(f.read(), "%d %d 1024" % (n, 10 * n - 10))
            with open(piece["progressFile"]) as f:
                self.assertEqual(json.load(f)["progress"], 10 * n - 9)
        p.stdin.close()
        self.assertEqual(p.stdout.read(), b"")
        self.assertEqual(p.stderr.read().decode().splitlines(), [w for n in range(1, 5) for w in ("piece %d" % n, "from a child")])
        self.assertEqual(p.wait(60), 0)

    def test_a_loop_that_is_left_is_not_done(self):
        p = self.start({"SLUICE_RESIDENT": "1"})
        p.stdout.readline()
        self.heard(p)
        self.give(p, self.piece(6))
        self.assertEqual(self.heard(p), {"subjob": "1-6", "exit": 85})
        self.assertEqual(p.wait(60), 0)
        p = self.start({"SLUICE_RESIDENT": "1"})
        p.stdout.readline()
        self.heard(p)
        self.give(p, self.piece(7))
        self.assertEqual(p.stdout.read(), b"")  # no answer: Sluice counts what was reported
        self.assertEqual(p.wait(60), 0)

    def test_stops_a_piece_on_sigterm(self):
        p = self.start({"SLUICE_RESIDENT": "1"})
        p.stdout.readline()
        self.heard(p)
        self.give(p, self.piece(5))
        for line in p.stderr:
            if line == b"waits\n":
                break
        p.send_signal(signal.SIGTERM)
        self.assertEqual(self.heard(p), {"subjob": "1-5", "exit": 85})
        p.stdin.close()
        self.assertEqual(p.wait(60), 0)

    def test_ends_on_sigterm_between_pieces(self):
        p = self.start({"SLUICE_RESIDENT": "1"})
        p.stdout.readline()
        self.heard(p)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(60), 0)

    def test_has_the_one_piece_of_an_ordinary_subjob(self):
        for n, code in ((1, 0), (3, 85), (4, 1), (6, 85)):
            piece = self.piece(n)
            p = self.start({name: str(piece[key]) for key, name in sluice._NAMES.items() if key in piece})
            out, err = p.communicate(timeout=60)
            self.assertEqual(p.returncode, code)
            self.assertEqual(out.decode().splitlines()[:3], ["at start", "piece 1", "from a child"])
            self.assertEqual(err.decode(), "no luck\n" if n == 4 else "")


if __name__ == "__main__":
    unittest.main()
