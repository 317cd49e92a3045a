package cluster

import "testing"

func TestOthersAreNotNamed(t *testing.T) {
	for text, want := range map[string]string{
		"taken (lease) for job team-b.x from 10:00 until 11:00": "taken (lease) for somebody of another namespace from " +
			"10:00 until 11:00",
		"taken (lease) for job alone from 10:00 until further notice": "taken (lease) for somebody of another namespace from " +
			"10:00 until further notice",
		"taken (lease) for job team-a.x from 10:00 until 11:00":          "taken (lease) for job team-a.x from 10:00 until 11:00",
		"time taken (reclaim) by pod team-b/train-0, which waits for it": "time taken (reclaim) by somebody of another namespace",
		"time taken (reclaim) by workload team-b/w, which waits for it":  "time taken (reclaim) by somebody of another namespace",
		"taken (foreign) for team-b/train (pod train-0) from 10:00 until 1": "taken (foreign) for somebody of another namespace from " +
			"10:00 until 1",
		"taken (foreign) for team-a/train (pod train-0) from 10:00 until 1": "taken (foreign) for team-a/train (pod train-0) from 10:00 " +
			"until 1",
		"by pod team-a/t: time taken (reclaim) by pod team-a/t": "by pod team-a/t: time taken (reclaim) by pod team-a/t",
		"withdrawn: time taken (foreign) by team-b/x from 10:00": "withdrawn: time taken (foreign) by somebody of another " +
			"namespace from 10:00",
		"taken (drain) for node m1 is cordoned from 10:00": "taken (drain) for node m1 is cordoned from 10:00",
		"taken (maintenance) for annotation sluice.dev/maintenance from 1": "taken (maintenance) for annotation sluice.dev/maintenance " +
			"from 1",
		"taken (serving) for nights from 10:00; taken (lease) for job b.x": "taken (serving) for nights from 10:00; taken (lease) for " +
			"somebody of another namespace",
		"exit 1: loading job v1.2 failed; pod a/b, job 3.5 of 10": "exit 1: loading job v1.2 failed; pod a/b, job 3.5 of 10",
		"": "",
	} {
		if got := Discreet(text, "team-a"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestNamesAreHidden(t *testing.T) {
	names := map[string]bool{"team-b.y": true, "a": true, "job": true, "another": true, "of": true}
	for text, want := range map[string]string{
		"went to team-b.y: team-b.y team-b.y.": "went to " + Another + ": " + Another + " " + Another + ".",
		"team-b.yy and x.team-b.y stay":        "team-b.yy and x.team-b.y stay",
		"job a another":                        Another + " " + Another + " " + Another,
	} {
		if got := Hide(text, names); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
