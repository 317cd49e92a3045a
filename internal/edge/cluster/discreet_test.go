package cluster

import "testing"

func TestOthersAreNotNamed(t *testing.T) {
	for text, want := range map[string]string{
		"taken (lease) for job team-b.x from 10:00":                      "taken (lease) for job of another namespace from 10:00",
		"taken (lease) for job team-a.x from 10:00":                      "taken (lease) for job team-a.x from 10:00",
		"time taken (reclaim) by pod team-b/train-0, which waits for it": "time taken (reclaim) by pod of another namespace, which waits for it",
		"time taken (reclaim) by workload team-b/job-train, for":         "time taken (reclaim) by workload of another namespace, for",
		"by pod team-a/train-0, on slice sluice/m1/nvidia.com":           "by pod team-a/train-0, on slice sluice/m1/nvidia.com",
		"went to team-b.y of queue q: team-b.y team-b.y.":                "went to " + Another + " of queue q: " + Another + " " + Another + ".",
		"went to team-b.yy, and to a team":                               "went to team-b.yy, and to " + Another + " team",
		"1 job is ahead; of 1.5 GiB 2.5 are free":                        "1 job is ahead; of 1.5 GiB 2.5 are free",
		"": "",
	} {
		if got := Discreet(text, "team-a", "team-b.y", "a"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	// Names that are words of what stands in their place.
	if got := Discreet("job a another of", "team-a", "job", "a", "another", "of"); got != Another+" "+Another+" "+Another+" "+Another {
		t.Errorf("%q", got)
	}
}
