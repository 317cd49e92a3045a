package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// negotiated is a daemon whose market negotiates: a job with a record, one without, and one of a template.
func negotiated() *apitest.Fake {
	fake := apitest.New()
	known := status.Trust{Trust: protocol.Trust{Error: 100_000, History: 610_000, Seen: 12, Risk: 5000, Pace: 1050, Runs: 40, Excess: 1,
		Evidence: -120_000}, Believed: 818_731}
	fresh := status.Trust{Trust: protocol.Trust{History: 500_000}, Believed: 1_000_000}
	won := status.Subjob{
		Token: job.Token{Epoch: 1, Seq: 50}, Slice: "node-1/0/3g.40gb", Window: 9, Range: job.Range{From: 0, To: 40},
		Committed:    job.Range{From: 0, To: 40},
		PlannedStart: apitest.At(-4 * time.Minute), PlannedEnd: apitest.At(-3 * time.Minute), Start: apitest.At(-4 * time.Minute),
		End:       apitest.At(-3 * time.Minute),
		Predicted: 600 << 20, Peak: 512 << 20, Outcome: "done",
		Bid: &protocol.Bid{Score: 900_000, Calibrated: 841_087, Weight: 663_333 * 60_000, Price: 39_799, Option: "bf16"},
	}
	given := won // as going on in a window that nobody bid for
	given.Token.Seq, given.Range, given.Committed, given.Bid = 51, job.Range{From: 40, To: 60}, job.Range{From: 40, To: 60}, nil
	fake.Set(status.Job{
		Name: "frames", Queue: "default", Kind: job.Items, State: job.Waiting,
		Reason: "(Priority) others in its time were worth more, or wait longer", Progress: 60, Total: 600, Unit: "frame",
		Subjobs: 2, Submitted: apitest.At(-5 * time.Minute), Started: apitest.At(-4 * time.Minute), Wait: time.Minute,
		History: []status.Subjob{won, given},
		Trust:   known, Spread: 1500, Profile: status.Profile{Source: forecast.Declared, Spread: 1500},
	})
	fake.Set(status.Job{
		Name: "newcomer", Queue: "default", Kind: job.Items, State: job.Waiting,
		Reason: "(Agent) it is external and no agent of it is connected", Total: 10, Unit: "item",
		Submitted: apitest.At(-time.Minute), Wait: time.Minute, Trust: fresh, Profile: status.Profile{Source: forecast.Taught, Runs: 120},
	})
	fake.Told["frames"] = apitest.Standing{
		Prospect: "it bid in 12 rounds since it was last served, and lost; nearest on node-1/0/3g.40gb: its best bid scored 0.61 and " +
			"weighed 0.61, " +
			"train of queue research scored 0.72 and weighed 0.72: it lost by 0.11; likely to go on within 3m to 12m",
		Losses: []status.Loss{
			{Profile: "3g.40gb", Slice: "node-1/0/3g.40gb", Count: 9, Last: apitest.At(-time.Second), Score: 610_000, Weight: 610_000,
				Winner: "train", WinnerQueue: "research", WinnerScore: 720_000, WinnerWeight: 720_000, Winners: 1, WinnersWeight: 720_000},
			{Profile: "1g.10gb", Slice: "node-1/1/1g.10gb", Count: 2, Last: apitest.At(-time.Minute), Score: 600_000, Weight: 600_000,
				Winner: "count-words", WinnerQueue: "default", WinnerScore: 500_000, WinnerWeight: 500_000, Winners: 3,
				WinnersWeight: 1_310_000},
			{Profile: "7g.80gb", Slice: "node-1/2/7g.80gb", Count: 1, Last: apitest.At(-2 * time.Minute), Score: 590_000, Weight: 590_000,
				Winner: "gang", WinnerQueue: "default", WinnerScore: 100_000, WinnerWeight: 100_000, Winners: 1, WinnersWeight: 100_000,
				Late: true},
		},
	}
	fake.QueueList[0].Trust, fake.QueueList[0].Credits = known, 7_200_000
	return fake
}

// TestNegotiated shows what a market that negotiates has to say of jobs, subjobs and queues. That one that does not says nothing
// of it is in answers.golden.
func TestNegotiated(t *testing.T) {
	addr := answering(t, negotiated())
	var all strings.Builder
	for _, line := range []string{
		"explain frames", "explain frames -o json", "explain newcomer", "job frames", "job frames -o wide", "job frames -o json",
		"job newcomer", "queues", "queues -o json",
	} {
		r := sluice(t, addr, "", strings.Fields(line)...)
		fmt.Fprintf(&all, "$ sluice %s\n%s[exit %d]\n\n", line, r.out+r.err, r.code)
	}
	golden(t, "testdata/negotiated.golden", strings.ReplaceAll(all.String(), addr, "SERVER"))
}
