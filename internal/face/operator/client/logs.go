//go:build kubernetes

package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"connectrpc.com/connect"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/cluster"
	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
)

// Logs sends what subjobs wrote, from their Pods: for as long as these are there. A cluster keeps one stream for both, which is sent as stdout.
func (h *handler) Logs(ctx context.Context, r *connect.Request[pb.LogsRequest], s *connect.ServerStream[pb.LogsResponse]) error {
	m := r.Msg
	if _, err := h.get(ctx, m.Name); err != nil {
		return sent(err)
	}
	if m.Follow {
		return sent(h.follow(ctx, m, s.Send))
	}
	list, err := h.pods(ctx, m.Name, m.Subjob)
	if err != nil {
		return sent(err)
	}
	if len(list) == 0 {
		return sent(errkind.Errorf(errkind.NotFound, "no Pod of it is there now, and logs go with their Pod: `kubectl sluice logs -f %s` follows those that come, and outputs stay", m.Name))
	}
	_, err = h.copyLog(ctx, &list[len(list)-1], 0, false, s.Send)
	return sent(err)
}

// pods are those of a job, in the order of their making; of one subjob where it is named.
func (h *handler) pods(ctx context.Context, name, subjob string) ([]corev1.Pod, error) {
	id := cluster.JobID(h.say.namespace, name)
	selector := cluster.LabelJob + "=" + cluster.JobLabel(id)
	if subjob != "" {
		if _, err := job.ParseToken(subjob); err != nil {
			return nil, errkind.Errorf(errkind.Invalid, "subjob: %w", err)
		}
		selector += "," + cluster.LabelToken + "=" + subjob
	}
	list, err := h.client.CoreV1().Pods(h.say.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, h.say.explain(err, "list", "pods")
	}
	all := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		var run struct{ Job job.ID }
		return json.Unmarshal([]byte(p.Annotations[cluster.AnnotationRun]), &run) != nil || run.Job != id
	})
	slices.SortStableFunc(all, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// copyLog sends what one Pod wrote behind its first bytes, and says how many more those were. One whose container has not begun has written nothing.
func (h *handler) copyLog(ctx context.Context, p *corev1.Pod, from int64, follow bool, send func(*pb.LogsResponse) error) (n int64, err error) {
	body, err := h.client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: cluster.Container, Follow: follow}).Stream(ctx)
	if apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) { // it waits to start, or is gone
		return 0, nil
	}
	if err != nil {
		return 0, h.say.explain(err, "get", "pods/log")
	}
	defer func() { _ = body.Close() }()
	if _, err = io.CopyN(io.Discard, body, from); err != nil {
		return 0, nil //nolint:nilerr // it has written no more than that
	}
	buf := make([]byte, 32<<10)
	for {
		got, err := body.Read(buf)
		if got > 0 {
			n += int64(got)
			if err := send(&pb.LogsResponse{Data: bytes.Clone(buf[:got]), Subjob: p.Labels[cluster.LabelToken]}); err != nil {
				return n, err
			}
		}
		if err != nil {
			return n, nil //nolint:nilerr // it has ended, or is asked again
		}
	}
}

// tail is one Pod that is followed.
type tail struct {
	at          int64
	busy, ended bool
}

// follow sends what all subjobs of a job write, those that run and those that come, until it is over.
func (h *handler) follow(ctx context.Context, m *pb.LogsRequest, send func(*pb.LogsResponse) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type piece struct {
		subjob string
		data   *pb.LogsResponse // nil: what was read has ended
		err    error
	}
	come, tails := make(chan piece), map[string]*tail{}
	for _, p := range m.Seen {
		tails[p.GetSubjob()] = &tail{at: p.GetStdout(), ended: p.GetOver()}
	}
	busy, over := 0, false
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case p := <-come:
			t := tails[p.subjob]
			if p.data == nil {
				busy, t.busy = busy-1, false
				if p.err != nil {
					return p.err
				}
				continue
			}
			t.at += int64(len(p.data.Data))
			if err := send(p.data); err != nil {
				return err
			}
		case <-tick.C:
			tick.Reset(look)
			o, err := h.get(ctx, m.Name)
			if err != nil {
				return err
			}
			list, err := h.pods(ctx, m.Name, m.Subjob)
			if err != nil {
				return err
			}
			if over && busy == 0 {
				return nil
			}
			over = jobOf(o, time.Now()).Final || m.Subjob != "" && len(list) == 0 // one more look, for what was written last
			for i := range list {
				p := &list[i]
				token := p.Labels[cluster.LabelToken]
				t := tails[token]
				if t == nil {
					t = &tail{}
					tails[token] = t
				}
				if t.busy || t.ended {
					continue
				}
				t.busy, t.ended = true, p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
				busy++
				from := t.at
				go func() {
					_, err := h.copyLog(ctx, p, from, true, func(r *pb.LogsResponse) error {
						select {
						case come <- piece{subjob: token, data: r}:
							return nil
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					})
					select {
					case come <- piece{subjob: token, err: err}:
					case <-ctx.Done():
					}
				}()
			}
		}
	}
}
