package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/face/api"
)

// queues is a service with queues alone; what else it is asked it accepts.
type queues struct {
	api.Service
	list []status.Queue
}

func (q queues) Queues(context.Context) ([]status.Queue, error) { return q.list, nil }

func (queues) SetQueue(context.Context, string, protocol.Queue) error { return nil }

func (queues) SubmitAll(_ context.Context, jobs []api.Submission, _ []byte) []api.Outcome {
	return make([]api.Outcome, len(jobs))
}

func (queues) DryRun(context.Context, *job.Spec) (status.Explanation, error) {
	return status.Explanation{}, nil
}

func TestTenants(t *testing.T) {
	t.Parallel()
	list := []status.Queue{{Queue: protocol.Queue{Name: "owned", User: "root"}}, {Queue: protocol.Queue{Name: "free"}}}
	for _, c := range []struct {
		single      bool
		queue, user string
		submit, set bool
	}{
		{true, "free", "", true, true},
		{true, "default", "", true, true},
		{true, "owned", "root", true, false},
		{false, "owned", "root", true, true},
		{false, "free", "", false, false},
		{false, "default", "", false, false},
		{false, "unheard-of", "", true, false}, // the service says that there is none
	} {
		s := tenants{queues{list: list}, c.single}
		both := []api.Submission{{Spec: &job.Spec{Queue: "owned"}}, {Spec: &job.Spec{Queue: c.queue}, Replace: true}}
		err := s.SubmitAll(t.Context(), both, nil)[1].Err
		if (err == nil) != c.submit || err != nil && errkind.Of(err) != errkind.Denied {
			t.Errorf("%+v: submit: %v", c, err)
		}
		if _, err = s.DryRun(t.Context(), &job.Spec{Queue: c.queue}); (err == nil) != c.submit {
			t.Errorf("%+v: dry run: %v", c, err)
		}
		if err = s.SetQueue(t.Context(), "", protocol.Queue{Name: c.queue, User: c.user}); (err == nil) != c.set {
			t.Errorf("%+v: set: %v", c, err)
		}
	}
}

func TestSingleUserSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	o := UpOptions{Listen: "127.0.0.1:1", Queues: []protocol.Queue{{Name: "a", User: "no-such-account"}, {Name: "b"}, {Name: "c"}}}
	_, err := singleUser(o, filepath.Join(t.TempDir(), "data"))
	if errkind.Of(err) != errkind.Denied {
		t.Fatalf("got %v, want a refusal", err)
	}
	want := []string{"queue a: ", "no-such-account", "b, c", "need a token"}
	if os.Geteuid() != 0 {
		want = append(want, "runs as root")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v; want it to say %q", err, w)
		}
	}
}
