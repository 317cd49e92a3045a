package head

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/local"
)

// operations are all there are.
var operations = []Operation{PutObject, OpenObject, StatObject, RenewObject, RemoveObject, ListObjects, SetName, ReadName, ListNames,
	RemoveName, SweepUploads, ReadClock}

func TestMachines(t *testing.T) {
	own := func(t job.Token) bool { return t.Epoch == 7 }
	names := []Operation{SetName, ReadName, RemoveName}
	free := []Operation{PutObject, OpenObject, StatObject, RenewObject, ReadClock}
	for _, c := range []struct {
		name string
		may  []Operation
	}{
		{"jobs/me/train/7-1", names},
		{"jobs/me/train/2/7-1", names},
		{"jobs/me/train/8-1", []Operation{ReadName}}, // of another machine: its checkpoint is resumed from
		{"jobs/me/train/7-01", []Operation{ReadName}},
		{"jobs/me/train/latest", []Operation{ReadName}},
		{"jobs/me/7-1", []Operation{ReadName}}, // it is where a job is, and no subjob
		{"jobs/me", nil},
		{"jobs/me/", nil},
		{"jobs/you/train/7-1", nil},
		{"jobs/mere/train/7-1", nil},
		{"jobs//train/7-1", nil},
		{"jobs/me/../you/train/7-1", nil},
		{"jobs/me/train/../../you/7-1", nil},
		{"work/me/train/7-1", nil},
		{"me/train/7-1", nil},
		{"7-1", nil},
		{"", nil},
	} {
		for _, o := range operations {
			want := slices.Contains(c.may, o) || slices.Contains(free, o)
			err := Machines("me", own, Call{Operation: o, Machine: "m", Name: c.name})
			if (err == nil) != want || err != nil && errkind.Of(err) != errkind.Denied {
				t.Errorf("%s %q: %v, want it allowed: %v", o, c.name, err, want)
			}
		}
	}
	if Machines("", own, Call{Operation: SetName, Name: "jobs/me/train/7-1"}) == nil {
		t.Error("without an owner everybody's names are a machine's")
	}
	if Machines("me", own, Call{Operation: "format the disk"}) == nil {
		t.Error("an operation that nobody knows is allowed")
	}
}

// Whoever decides is asked for each operation, with what it is about, and what is denied does not reach the store.
func TestEveryCallIsAskedFor(t *testing.T) {
	own, err := local.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o, err := own.Put(t.Context(), "", strings.NewReader("data"))
	if err != nil {
		t.Fatal(err)
	}
	asked := map[Operation]Call{}
	h := serve(t, newAuthority(t), "", ServiceOptions{Store: own, May: func(_ context.Context, c Call) error {
		asked[c.Operation] = c
		return errkind.Errorf(errkind.Denied, "not today")
	}})
	refs := store.Refs{"x": o.Digest}
	s, ctx := h.join("n"), t.Context()
	second := func(_ any, err error) error { return err }
	for _, c := range []struct {
		about Call
		err   error
	}{
		{Call{Operation: PutObject, Digest: o.Digest, Size: 4}, second(s.Put(ctx, o.Digest, strings.NewReader("data")))},
		{Call{Operation: OpenObject, Digest: o.Digest}, second(s.Open(ctx, o.Digest))},
		{Call{Operation: StatObject, Digest: o.Digest}, second(s.Stat(ctx, o.Digest))},
		{Call{Operation: RenewObject, Digest: o.Digest}, s.Renew(ctx, o.Digest)},
		{Call{Operation: RemoveObject, Digest: o.Digest}, second(s.Remove(ctx, o.Digest, time.Now().Add(time.Hour)))},
		{Call{Operation: ListObjects}, s.List(ctx, func(store.Object) error { return nil })},
		{Call{Operation: SetName, Name: "a/b", Refs: refs}, s.SetName(ctx, "a/b", refs)},
		{Call{Operation: ReadName, Name: "a/b"}, second(s.ReadName(ctx, "a/b"))},
		{Call{Operation: ListNames, Name: "a"}, s.Names(ctx, "a", func(store.Named) error { return nil })},
		{Call{Operation: RemoveName, Name: "a/b"}, s.Unname(ctx, "a/b")},
		{Call{Operation: SweepUploads}, second(s.Sweep(ctx, time.Now()))},
		{Call{Operation: ReadClock}, second(s.Now(ctx))},
	} {
		if errkind.Of(c.err) != errkind.Denied || !strings.Contains(c.err.Error(), "not today") {
			t.Errorf("%s: %v", c.about.Operation, c.err)
		}
		got := asked[c.about.Operation]
		if got.Machine != "n" || got.Digest != c.about.Digest || got.Size != c.about.Size || got.Name != c.about.Name ||
			!maps.Equal(got.Refs, c.about.Refs) && len(c.about.Refs) > 0 {
			t.Errorf("asked for %+v, want %+v", got, c.about)
		}
	}
	if len(asked) != len(operations) {
		t.Errorf("asked for %d operations of %d", len(asked), len(operations))
	}
	if _, err = own.ReadName(ctx, "a/b"); errkind.Of(err) != errkind.NotFound {
		t.Errorf("the name that was denied: %v", err)
	}
	if _, err = own.Stat(ctx, o.Digest); err != nil {
		t.Errorf("the object whose removal was denied: %v", err)
	}
}

func TestAServiceNeedsItsOptions(t *testing.T) {
	own, err := local.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	whole := ServiceOptions{Store: own, Caller: caller, May: everything}
	for what, strip := range map[string]func(*ServiceOptions){
		"Store": func(o *ServiceOptions) { o.Store = nil }, "Caller": func(o *ServiceOptions) { o.Caller = nil },
		"May": func(o *ServiceOptions) { o.May = nil },
	} {
		o := whole
		strip(&o)
		if _, err := NewService(o); errkind.Of(err) != errkind.Invalid {
			t.Errorf("without %s: %v", what, err)
		}
	}
	for _, u := range []string{"", "head:7600", "http://head:7600", "https://", "://"} {
		if _, err := Open(Options{URL: u, Client: http.DefaultClient}); errkind.Of(err) != errkind.Invalid {
			t.Errorf("the address %q: %v", u, err)
		}
	}
	if _, err := Open(Options{URL: "https://head:7600"}); errkind.Of(err) != errkind.Invalid {
		t.Errorf("without a client: %v", err)
	}
}
