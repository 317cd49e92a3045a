//go:build kubernetes

package operator

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// TestPodsAreToldWhatTheyWaitedFor: once each, if it was a second or more.
func TestPodsAreToldWhatTheyWaitedFor(t *testing.T) {
	from := quantity.Instant(1000 * time.Second)
	wait := func(n uint64, uid, who string, took time.Duration) status.HostWait {
		return status.HostWait{Number: n, Node: "n", Wish: uid, Who: who, Job: "team.train", Pool: "mig", From: from, Until: from.Add(took)}
	}
	all := []status.HostWait{
		wait(1, "u1", "pod a/slow", 3240*time.Millisecond), wait(2, "u2", "pod a/quick", 999*time.Millisecond),
		wait(3, "u3", "workload a/group", time.Hour), wait(4, "u4", "pod b/second", time.Second),
	}
	events, away := record.NewFakeRecorder(100), true
	w := hostWaits{events: events, log: slog.New(slog.DiscardHandler), after: map[job.NodeID]uint64{},
		over: func(_ context.Context, after map[job.NodeID]uint64) ([]status.HostWait, error) {
			if away {
				return nil, errors.New("away")
			}
			return all[after["n"]:], nil
		}}
	if err := w.look(t.Context()); err == nil {
		t.Error("nobody answered, and that is no error")
	}
	away = false
	for range 2 {
		if err := w.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(events.Events)
	var got []string
	for text := range events.Events {
		got = append(got, text)
	}
	want := []string{
		"Normal WaitedForSubjob waited 3.2s until a subjob of Sluice's job team/train was gone from a device of pool mig",
		"Normal WaitedForSubjob waited 1s until a subjob of Sluice's job team/train was gone from a device of pool mig",
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("the Events are\n%q, want\n%q", got, want)
	}
}
