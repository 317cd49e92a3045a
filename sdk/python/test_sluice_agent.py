"""Tests of sluice_agent.py: python3 -m unittest, or through `make test`."""

import http.server
import json
import threading
import unittest

import sluice_agent as sa

CALL = {
    "round": "5", "closes": "2026-03-01T12:00:01Z", "most": 4, "free": [{"from": "10", "to": "90"}], "left": "80", "first": True, "pace": "1100",
    "windows": [{
        "window": "3", "slice": "n/0/a", "profile": "1g.10gb", "speed": "500", "memoryBytes": "1073741824",
        "start": "2026-03-01T12:00:00.000000001Z", "end": "2026-03-01T12:01:00.5Z", "open": True,
    }],
}


class Daemon(http.server.BaseHTTPRequestHandler):
    """Answers each call with the next of a script: (status, body), or None to hang up."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.said.append(dict(said, path=self.path, connection=self.client_address))
        answer = self.server.script.pop(0)
        if answer is None:
            self.close_connection = True
            return
        body = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def error(status, code):
    return status, {"code": code, "message": "because"}


class Serve(unittest.TestCase):
    def serve(self, script, propose=lambda call: [], **more):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Daemon)
        server.script, server.said = list(script), []
        self.said = server.said
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            sa.serve("train", "secret", propose, addr="127.0.0.1:%d" % server.server_address[1], **more)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def test_a_whole_negotiation(self):
        calls, notices, log = [], [], []

        def propose(call):
            calls.append(call)
            w = call.windows[0]
            yield sa.Variant(w, 10, 20, run=1.5, score=0.25)
            yield sa.Variant(w, 10, 30, run=1, wall=2, after=0.5, memory=11, option="bf16", id=7)

        concluded = {
            "kind": "CONCLUDED", "window": "3", "subjob": "1-2", "range": {"from": "10", "to": "20"}, "outcome": "DONE", "ran": "1.250s",
            "peakMemoryBytes": "7", "score": 0.5,
        }
        self.serve([
            (200, {"session": "18446744073709551615", "events": [{"call": CALL}]}),
            (200, {"session": "18446744073709551615", "dropped": "2", "notes": ["round 5: cut"]}),
            (200, {"session": "18446744073709551615", "events": [{"told": {"round": "5", "notices": [concluded]}}], "over": True}),
        ], propose, told=notices.append, log=log.append)
        c = calls[0]
        self.assertEqual((len(calls), c.round, c.most, c.free, c.left, c.first), (1, 5, 4, [(10, 90)], 80, True))
        self.assertEqual((c.memory_scale, c.pace), (1.0, 1.1))
        w = c.windows[0]
        self.assertEqual((w.id, w.slice, w.profile, w.speed, w.memory, w.start), (3, "n/0/a", "1g.10gb", 0.5, 1 << 30, 1772366400.000000001))
        self.assertAlmostEqual(w.length, 60.5)
        self.assertTrue(w.open)
        self.assertFalse(sa.Window(dict(CALL["windows"][0], open=False)).open)
        opened, answered, heard = self.said
        self.assertEqual((opened["session"], opened["key"], opened["path"]), ("0", "secret", sa._PATH))
        self.assertNotIn("key", answered)
        self.assertEqual(answered["session"], "18446744073709551615")
        self.assertEqual(answered["answers"], [{"round": "5", "variants": [
            {"id": 1, "window": "3", "range": {"from": "10", "to": "20"}, "start": "2026-03-01T12:00:00.000000001Z", "run": "1.500000000s",
             "wall": "1.500000000s", "memoryBytes": "0", "option": "", "score": 0.25},
            {"id": 7, "window": "3", "range": {"from": "10", "to": "30"}, "start": "2026-03-01T12:00:00.500000001Z", "run": "1.000000000s",
             "wall": "2.000000000s", "memoryBytes": "11", "option": "bf16", "score": 1.0},
        ]}])
        self.assertEqual(heard["answers"], [])
        self.assertEqual(opened["connection"], heard["connection"], "one connection for all")
        n = notices[0]
        self.assertEqual((n.kind, n.round, n.window, n.subjob, n.from_, n.to, n.outcome, n.ran, n.peak, n.score), ("concluded", 5, 3, "1-2", 10, 20, "done", 1.25, 7, 0.5))
        self.assertEqual(len(log), 2)

    def test_signals(self):
        wanted = []

        def propose(call):
            wanted.append(call.wanted)
            if call.wanted == "interest":
                return [sa.Variant(call.windows[0]), sa.Variant(call.windows[0], wall=2, memory=11)]

        self.serve([
            (200, {"session": "1", "events": [{"call": dict(CALL, wanted="interest")}]}),
            (200, {"session": "1", "events": [{"call": dict(CALL, wanted="subjob")}]}),
            (200, {"session": "1", "over": True}),
        ], propose)
        self.assertEqual(wanted, ["interest", "subjob"])
        self.assertEqual(self.said[1]["answers"][0]["variants"], [
            {"id": 1, "window": "3", "memoryBytes": "0"}, {"id": 2, "window": "3", "memoryBytes": "11", "wall": "2.000000000s"},
        ])
        self.assertEqual(self.said[2]["answers"], [{"round": "5", "variants": []}])

    def test_comes_back(self):
        self.serve([
            (200, {"session": "1", "events": [{"call": CALL}]}),
            error(503, "unavailable"),
            None,
            (502, "a proxy speaks"),
            (200, {"hello": "from another server"}),
            error(404, "not_found"),
            (200, {"session": "2", "over": True}),
        ])
        self.assertEqual([s["session"] for s in self.said], ["0", "1", "1", "1", "1", "1", "0"])
        self.assertEqual([len(s.get("answers", [])) for s in self.said], [0, 1, 0, 0, 0, 0, 0])
        self.assertEqual(self.said[6]["key"], "secret")

    def test_passes_over_what_it_does_not_understand(self):
        notices, log = [], []
        broken = dict(CALL, windows=[{"window": "3", "start": "noon", "end": None}])
        self.serve([
            (200, {"session": "1", "events": [
                {"weather": {"rain": True}}, {"call": {}}, {"call": broken}, {"call": None}, {"told": []}, "hello",
                {"told": {"round": "5", "notices": [{"kind": "LOST", "variant": "x"}]}},
                {"told": {"round": "5", "notices": [{"kind": "APPLAUDED", "outcome": "OUTCOME_UNSPECIFIED"}]}}, {"call": CALL},
            ]}),
            (200, {"session": "1", "over": True}),
        ], told=notices.append, log=log.append)
        self.assertEqual([a["round"] for a in self.said[1]["answers"]], ["5"])
        self.assertEqual([n.kind for n in notices], ["applauded"])
        self.assertEqual(len(log), 6)

    def test_ends_where_trying_again_does_not_help(self):
        for status, code, want in ((403, "permission_denied", sa.KeyRefused), (409, "aborted", sa.Superseded), (400, "invalid_argument", sa.Refused)):
            with self.assertRaisesRegex(want, "because"):
                self.serve([error(status, code)])
            self.assertEqual(len(self.said), 1)

    def test_an_address_that_is_none(self):
        with self.assertRaisesRegex(ValueError, "host:port"):
            sa.serve("train", "secret", lambda call: [], addr="ftp://x")


class Times(unittest.TestCase):
    def test_there_and_back(self):
        for text, want in (("1970-01-01T00:00:00Z", 0), ("2026-03-01T12:00:00.5Z", 1772366400500000000), ("2026-03-01T12:00:00.000000001Z", 1772366400000000001)):
            self.assertEqual(sa._nanoseconds(text), want)
            self.assertEqual(sa._nanoseconds(sa._stamp(want)), want)
        for text in ("", "noon", "2026-03-01T12:00:00+01:00", "2026-03-01T12:00:00.0000000001Z"):
            with self.assertRaises(ValueError):
                sa._nanoseconds(text)


if __name__ == "__main__":
    unittest.main()
