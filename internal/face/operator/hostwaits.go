//go:build kubernetes

package operator

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/cluster"
)

const (
	// hostWaitsAgain is how often it is looked for waits that are over. The daemon keeps 256 of them.
	hostWaitsAgain = 2 * time.Second
	// leastHostWait is how long a Pod must have waited for an Event about it.
	leastHostWait = time.Second
	// waitedForSubjob is the reason of such Events.
	waitedForSubjob = "WaitedForSubjob"
)

// hostWaits records an Event on each Pod of somebody else that waited for a subjob to be gone, with how long and for which job. The daemon
// has one wait for each Pod.
type hostWaits struct {
	over   func(ctx context.Context, after map[job.NodeID]uint64) ([]status.HostWait, error)
	events record.EventRecorder
	log    *slog.Logger
	// after are the numbers of the last waits that were seen.
	after map[job.NodeID]uint64
}

// run looks until ctx ends.
func (w *hostWaits) run(ctx context.Context) {
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn("what Pods waited for is asked again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(hostWaitsAgain):
		}
	}
}

// look records what is new.
func (w *hostWaits) look(ctx context.Context) error {
	list, err := w.over(ctx, maps.Clone(w.after))
	for i := range list {
		w.after[list[i].Node] = list[i].Number
		w.tell(&list[i])
	}
	return err
}

// tell records an Event for one wait, unless it was short or is no Pod's.
func (w *hostWaits) tell(x *status.HostWait) {
	kind, key, _ := strings.Cut(x.Who, " ")
	namespace, name, isPod := strings.Cut(key, "/")
	took := x.Until.Sub(x.From)
	if kind != "pod" || !isPod || took < leastHostWait {
		return
	}
	of := string(x.Job)
	if ns, own, ours := cluster.SplitJob(x.Job); ours {
		of = ns + "/" + own
	}
	w.events.Eventf(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(x.Wish)},
		corev1.EventTypeNormal, waitedForSubjob, "waited %s until a subjob of Sluice's job %s was gone from a device of pool %s",
		took.Round(100*time.Millisecond), of, x.Pool)
}
