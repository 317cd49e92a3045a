package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/config"
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
		s := tenants{Service: queues{list: list}, single: c.single}
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
	o := Options{Listen: "127.0.0.1:1", File: config.Daemon{Queues: []protocol.Queue{{Name: "a", User: "no-such-account"}, {Name: "b"},
		{Name: "c"}}}}
	_, err := singleUser(o, filepath.Join(t.TempDir(), "data"))
	if errkind.Of(err) != errkind.Denied {
		t.Fatalf("got %v, want a refusal", err)
	}
	want := []string{"queue a: ", "no-such-account", "b, c"}
	if os.Geteuid() != 0 {
		want = append(want, "runs as root")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v; want it to say %q", err, w)
		}
	}
}

// TestAQueueOfTheFileIsSetThere: what a start would undo is refused, with the file's name; what the file has anyway is not.
func TestAQueueOfTheFileIsSetThere(t *testing.T) {
	inFile := protocol.Queue{Name: "lab", Weight: 3}
	s := tenants{Service: queues{}, single: true, file: "/etc/sluice/queues.yaml", given: []protocol.Queue{inFile}}
	for _, q := range []protocol.Queue{inFile, {Name: "other", Weight: 9}} {
		if err := s.SetQueue(t.Context(), "", q); err != nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if err := s.SetQueue(t.Context(), "", protocol.Queue{Name: "lab", Weight: 9}); errkind.Of(err) != errkind.Conflict ||
		!strings.Contains(err.Error(), "/etc/sluice/queues.yaml names it") {
		t.Errorf("another weight: %v", err)
	}
	var log bytes.Buffer
	before := queues{list: []status.Queue{{Queue: protocol.Queue{Name: "lab", Weight: 9}}}}
	o := Options{File: config.Daemon{Queues: []protocol.Queue{inFile}}, Config: "/etc/sluice/queues.yaml",
		Log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := setQueues(t.Context(), before, o); err != nil || !strings.Contains(log.String(), "weight 9") ||
		!strings.Contains(log.String(), "weight 3") {
		t.Errorf("a start that changes it: %v, %s", err, &log)
	}
	log.Reset()
	before.list[0].Queue = inFile
	if err := setQueues(t.Context(), before, o); err != nil || log.Len() > 0 {
		t.Errorf("a start that changes nothing: %v, %s", err, &log)
	}
}
