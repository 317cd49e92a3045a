package status

import "testing"

func TestUnquoted(t *testing.T) {
	const progress, backoff = "3 times in a row its subjobs ended without progress", "(Backoff) 3 places in a row that it had won were " +
		"refused (no room); it asks again in 1s"
	for reason, want := range map[string]string{
		"":                            "",
		"no slice is usable: drained": "no slice is usable: drained",
		progress:                      progress,
		backoff:                       backoff,
		progress + ": key=abc: bad":   progress,
		"ending (" + progress + ": abc): 2 subjobs are being stopped": "ending (" + progress,
		"its subjobs were ended from outside: abc":                    "its subjobs were ended from outside",
		"item 4 fails whenever it runs alone: abc":                    "item 4 fails whenever it runs alone",
		"17 were bad, more than the 16 that may be skipped: abc":      "17 were bad, more than the 16 that may be skipped",
		"pausing for 1s after a subjob without progress: abc":         "pausing for 1s after a subjob without progress",
		"(Node) it could not run it, 2 times in a row (abc); again":   "(Node) it could not run it, 2 times in a row",
	} {
		if got := Unquoted(reason); got != want {
			t.Errorf("%q is shown as %q, want %q", reason, got, want)
		}
	}
}
