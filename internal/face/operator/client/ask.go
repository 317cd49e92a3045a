//go:build kubernetes

package client

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/face/operator"
)

const (
	// patience is how long an operator may take to answer; soon is the first polling interval, which doubles up to look.
	patience = 25 * time.Second
	soon     = 50 * time.Millisecond
)

// Explain asks the operator why a job waits, or where it ran.
func (h *handler) Explain(ctx context.Context, r *connect.Request[pb.ExplainRequest]) (*connect.Response[pb.ExplainResponse], error) {
	var e pb.Explanation
	if err := h.in.about(ctx, config.AskExplain, r.Msg.Name, &e); err != nil {
		return nil, sent(err)
	}
	if e.Job != nil {
		e.Job.Name = r.Msg.Name
	}
	return connect.NewResponse(&pb.ExplainResponse{Explanation: &e}), nil
}

// GetJob asks the operator for all it knows of a job.
func (h *handler) GetJob(ctx context.Context, r *connect.Request[pb.GetJobRequest]) (*connect.Response[pb.GetJobResponse], error) {
	var j pb.Job
	if err := h.in.about(ctx, config.AskJob, r.Msg.Name, &j); err != nil {
		return nil, sent(err)
	}
	j.Name = r.Msg.Name
	return connect.NewResponse(&pb.GetJobResponse{Job: &j}), nil
}

// about asks about a job and decodes the answer into a message.
func (s *space) about(ctx context.Context, what, name string, answer proto.Message) error {
	o, err := s.get(ctx, name)
	if err != nil {
		return err
	}
	if !taken(o) {
		return errkind.Errorf(errkind.Conflict, "job %s: %s", name, notTaken(o))
	}
	return s.answer(ctx, map[string]any{"ask": what, "job": name, "operator": operator.Owner(o)}, answer)
}

// answer makes a Request and decodes its answer into a message.
func (s *space) answer(ctx context.Context, spec map[string]any, answer proto.Message) error {
	q, err := s.ask(ctx, spec)
	defer q.forget()
	if err == nil {
		err = q.wait(ctx, patience)
	}
	if err != nil {
		return err
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(q.text("answer")), answer); err != nil {
		return errkind.Errorf(errkind.Unsupported, "the operator's answer can't be read: it and this program are of versions too far "+
			"apart: %w", err)
	}
	return nil
}

// question is a Request that was made; on nil only forget may be called.
type question struct {
	in     *space
	object *unstructured.Unstructured
}

// ask creates a Request. The caller must call forget.
func (s *space) ask(ctx context.Context, spec map[string]any) (*question, error) {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": cluster.Group + "/" + cluster.Version, "kind": config.RequestKind,
		"spec": spec}}
	o.SetGenerateName("ask-")
	made, err := s.of(requests).Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsInvalid(err) {
		return nil, errkind.Errorf(errkind.Unsupported,
			"the cluster's definitions are older than this program, and Helm leaves them as they are: kubectl apply --server-side "+
				"--force-conflicts -f deploy/helm/sluice/crds (%s)", words(err))
	}
	if err != nil {
		return nil, s.say.explain(err, "create", "requests")
	}
	return &question{s, made}, nil
}

// forget deletes the Request. If that fails the operator removes it later.
func (q *question) forget() {
	if q == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = q.in.of(requests).Delete(ctx, q.object.GetName(), metav1.DeleteOptions{})
}

// wait polls for the answer to the Request's current generation.
func (q *question) wait(ctx context.Context, patience time.Duration) error {
	over := time.After(patience)
	for pause := soon; ; pause = min(2*pause, look) {
		select {
		case <-time.After(pause):
		case <-over:
			return errkind.Errorf(errkind.Unavailable, "no operator has answered within %s: none works now, or it is older than this "+
				"program: `kubectl get pods -A -l app.kubernetes.io/name=sluice` shows whether one is there", patience)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		o, err := q.in.of(requests).Get(ctx, q.object.GetName(), metav1.GetOptions{})
		if err != nil {
			return q.in.say.explain(err, "get", "requests")
		}
		c := conditionOf(o, "Answered")
		if c.generation != q.object.GetGeneration() {
			continue
		}
		if q.object = o; c.status != metav1.ConditionTrue {
			return errkind.Errorf(operator.KindOf(c.reason), "%s", c.message)
		}
		return nil
	}
}

// text reads a string of the answer.
func (q *question) text(key string) string {
	s, _, _ := unstructured.NestedString(q.object.Object, "status", key)
	return s
}

// amend changes the Request's spec.
func (q *question) amend(ctx context.Context, key string, value any) error {
	patched, err := q.in.patch(ctx, requests, q.object.GetName(), map[string]any{"spec": map[string]any{key: value}})
	if err != nil {
		return q.in.say.explain(err, "patch", "requests")
	}
	q.object = patched
	return nil
}
