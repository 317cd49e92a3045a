//go:build kubernetes

package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"connectrpc.com/connect"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/cluster"
)

// Logs sends the log of a job's latest Pod, or the named subjob's; with Follow those of all its Pods, as long as these exist. Kubernetes
// has one stream for stdout and stderr; it is sent as stdout.
func (h *handler) Logs(ctx context.Context, r *connect.Request[pb.LogsRequest], s *connect.ServerStream[pb.LogsResponse]) error {
	m := r.Msg
	if _, err := h.in.get(ctx, m.Name); err != nil {
		return sent(err)
	}
	if m.Follow {
		return sent(h.follow(ctx, m, s.Send))
	}
	list, err := h.in.pods(ctx, m.Name, m.Subjob)
	if err != nil {
		return sent(err)
	}
	if len(list) == 0 {
		return sent(errkind.Errorf(errkind.NotFound, "no Pod of it is there now, and logs go with their Pod: `kubectl sluice logs -f "+
			"%s` follows those that come, and outputs stay", m.Name))
	}
	_, err = h.in.copyLog(ctx, &list[len(list)-1], 0, false, s.Send)
	return sent(err)
}

// pods lists a job's Pods by creation, or the named subjob's alone.
func (s *space) pods(ctx context.Context, name, subjob string) ([]corev1.Pod, error) {
	id := cluster.JobID(s.say.namespace, name)
	selector := cluster.LabelJob + "=" + cluster.JobLabel(id)
	if subjob != "" {
		if _, err := job.ParseToken(subjob); err != nil {
			return nil, errkind.Errorf(errkind.Invalid, "subjob: %w", err)
		}
		selector += "," + cluster.LabelToken + "=" + subjob
	}
	list, err := s.client.CoreV1().Pods(s.say.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, s.say.explain(err, "list", "pods")
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

// copyLog sends a Pod's log from an offset on, and reports whether that was all of it. A container that has not begun has written nothing.
func (s *space) copyLog(ctx context.Context, p *corev1.Pod, from int64, follow bool, send func(*pb.LogsResponse) error) (whole bool,
	err error) {
	body, err := s.client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: cluster.Container,
		Follow: follow}).Stream(ctx)
	if apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) { // not begun, or gone
		return false, nil
	}
	if err != nil {
		return false, s.say.explain(err, "get", "pods/log")
	}
	defer func() { _ = body.Close() }()
	if _, err = io.CopyN(io.Discard, body, from); err != nil {
		return errors.Is(err, io.EOF), nil // nothing beyond the offset
	}
	buf := make([]byte, 32<<10)
	for {
		got, failed := body.Read(buf)
		if got > 0 {
			if err = send(&pb.LogsResponse{Data: bytes.Clone(buf[:got]), Subjob: p.Labels[cluster.LabelToken]}); err != nil {
				return false, err
			}
		}
		if failed != nil {
			return errors.Is(failed, io.EOF), nil // a broken stream is resumed
		}
	}
}

// tail is a Pod being followed: how much was sent, whether a reader is on it, and whether all was sent.
type tail struct {
	at           int64
	reads, ended bool
}

// piece is data from one Pod, or the end of a read (data is nil) with whether all was read.
type piece struct {
	pod   string
	data  *pb.LogsResponse
	whole bool
	err   error
}

// follow streams the logs of all Pods that a job has or gets, until the job is over or the named subjob's Pod is gone.
func (h *handler) follow(ctx context.Context, m *pb.LogsRequest, send func(*pb.LogsResponse) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	before := map[string]*pb.LogPosition{} // where a client that was cut off resumes
	for _, p := range m.Seen {
		before[p.GetSubjob()] = p
	}
	come, tails := make(chan piece), map[string]*tail{}
	read := func(p *corev1.Pod, t *tail) {
		tell := func(x piece) error {
			x.pod = p.Name
			select {
			case come <- x:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		whole, err := h.in.copyLog(ctx, p, t.at, true, func(r *pb.LogsResponse) error { return tell(piece{data: r}) })
		_ = tell(piece{whole: whole && over, err: err}) // fails if the client has left
	}
	reading, over := 0, false
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case x := <-come:
			t := tails[x.pod]
			if x.data == nil {
				reading--
				t.reads, t.ended = false, x.whole
				if x.err != nil {
					return x.err
				}
				continue
			}
			t.at += int64(len(x.data.Data))
			if err := send(x.data); err != nil {
				return err
			}
		case <-tick.C:
			tick.Reset(look)
			o, err := h.in.get(ctx, m.Name)
			if err != nil {
				return err
			}
			list, err := h.in.pods(ctx, m.Name, m.Subjob)
			if err != nil {
				return err
			}
			if over && reading == 0 {
				return nil
			}
			over = jobOf(o, time.Now()).Final || m.Subjob != "" && len(list) == 0 // one more look, for the last output
			for i := range list {
				p := &list[i]
				t := tails[p.Name]
				if t == nil {
					was := before[p.Labels[cluster.LabelToken]]
					t = &tail{at: was.GetStdout(), ended: was.GetOver()}
					tails[p.Name] = t
				}
				if !t.reads && !t.ended {
					t.reads = true
					reading++
					from := *t
					go read(p, &from)
				}
			}
		}
	}
}
