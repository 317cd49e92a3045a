package cli

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// machines are those of a head, as a test sets them.
type machines struct {
	list []status.Machine

	mu      sync.Mutex
	asked   []string
	removed []job.NodeID
}

func (m *machines) Cluster() status.Cluster {
	return status.Cluster{Head: true, Machines: m.list, Removed: 4}
}

func (m *machines) CreateToken(name job.NodeID, within time.Duration) (token, head string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, string(name)+" "+within.String())
	return "sluice-join-1-secret", "head:7118", nil
}

func (m *machines) RemoveMachine(_ context.Context, name job.NodeID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.ContainsFunc(m.list, func(x status.Machine) bool { return x.Name == name }) {
		return errkind.Errorf(errkind.NotFound, "no machine %q has joined", name)
	}
	m.removed = append(m.removed, name)
	return nil
}

func (m *machines) Bring(context.Context, ...job.ID) {}

// asks runs a command against a daemon, a head if it has machines.
func asks(t *testing.T, service api.Service, m *machines, in string, atTerminal bool, args ...string) (out, errs string, code int) {
	t.Helper()
	o := api.Options{Service: service, Now: apitest.Now}
	if m != nil {
		o.Machines = m
	}
	s := httptest.NewServer(api.Handler(o))
	t.Cleanup(s.Close)
	var said, failed bytes.Buffer
	code = Run(t.Context(), Deps{Args: args, Options: session.Options{In: strings.NewReader(in), Out: &said, Err: &failed, Now: apitest.Now,
		Patience: -1, Interactive: func() bool { return atTerminal },
		Getenv: func(k string) string {
			if k == "SLUICE_SERVER" {
				return strings.TrimPrefix(s.URL, "http://")
			}
			return ""
		}}})
	return said.String(), failed.String(), code
}

// clustered is a head of two machines, one of which is away.
func clustered() (*apitest.Fake, *machines) {
	f := apitest.New()
	f.SliceList = append(f.SliceList, status.Slice{Slice: protocol.Slice{ID: "m1/gpu0", Rack: "r1", Block: "b1", Address: "10.0.0.7"},
		Node: "m1", State: "idle"},
		status.Slice{Slice: protocol.Slice{ID: "m1/gpu1", Rack: "r1", Block: "b1", Address: "10.0.0.7"}, Node: "m1", State: "reserved",
			Reservations: []protocol.Reservation{{ID: 5, Kind: protocol.ForDrain, Slice: "m1/gpu1"}, {ID: 6, Kind: protocol.ForOwner}}},
		status.Slice{Slice: protocol.Slice{ID: "m2/gpu0"}, Node: "m2", State: "unconfirmed", Reason: "away"},
		status.Slice{Slice: protocol.Slice{ID: "m9/gpu0"}, Node: "m9", State: "idle"})
	return f, &machines{list: []status.Machine{
		{Name: "m1", Joined: apitest.At(-time.Hour), Up: true, Since: apitest.At(-time.Minute), Heard: apitest.At(0), Measured: true,
			Offset: -1500 * time.Microsecond, RoundTrip: 320 * time.Microsecond, Build: "0.1.0",
			Ephemeral: true, Until: apitest.At(30 * time.Minute)},
		{Name: "m2", Joined: apitest.At(-time.Hour), Why: "nothing was heard for too long", Heard: apitest.At(-time.Minute)},
	}}
}

// TestNodesAreListed: how many slices each has is what is known of slices, the rest what the head knows of links.
func TestNodesAreListed(t *testing.T) {
	t.Parallel()
	f, m := clustered()
	out, errs, code := asks(t, f, m, "", false, "nodes", "-o", "wide")
	want := []string{
		"NODE  STATE  SLICES  USABLE  ADDRESS   RACK  BLOCK  UNTIL     BUILD  JOINED    HEARD     CLOCK   RTT    WHY",
		"m1    ready  2       1       10.0.0.7  r1    b1     12:30:00  0.1.0",
		"-1.5ms  320µs",
		"m2    away   1       0",
		"nothing was heard for too long",
		"vm-1  ready  0       0",
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("%d, %s: no %q in\n%s", code, errs, w, out)
		}
	}
	if strings.Contains(out, "m9") {
		t.Errorf("a machine that has not joined is listed:\n%s", out)
	}
	f.SliceList = append(f.SliceList,
		status.Slice{Slice: protocol.Slice{ID: "m3/gpu0"}, Node: "m3", State: "unconfirmed", Reason: "the node is in trouble"},
		status.Slice{Slice: protocol.Slice{ID: "m3/gpu1"}, Node: "m3", State: "unconfirmed", Reason: "the node is in trouble"},
		status.Slice{Slice: protocol.Slice{ID: "m1/gpu2"}, Node: "m1", State: "quarantined", Reason: "processes remain"})
	m.list = append(m.list, status.Machine{Name: "m3", Up: true})
	out, errs, code = asks(t, f, m, "", false, "nodes")
	if !strings.Contains(out, "m3    closed  2       0       the node is in trouble\n") || strings.Contains(out, "processes remain") {
		t.Errorf("%d, %s: why a machine that is linked runs nothing:\n%s", code, errs, out)
	}
	out, _, _ = asks(t, f, nil, "", false, "nodes", "-o", "json")
	if !strings.Contains(out, `"name": "vm-1"`) || strings.Contains(out, "m1") || !strings.Contains(out, `"clockOffsetSeconds": null`) {
		t.Errorf("a daemon that is no head lists\n%s", out)
	}
}

// TestStatusSaysHowTheClusterStands: at a head how many machines are in which state, elsewhere nothing.
func TestStatusSaysHowTheClusterStands(t *testing.T) {
	t.Parallel()
	f, m := clustered()
	out, errs, code := asks(t, f, m, "", false, "status")
	if code != 0 || !strings.Contains(out, "machines: 1 ready, 1 away, 4 removed (`sluice nodes` lists them)") {
		t.Errorf("%d, %s: a head says\n%s", code, errs, out)
	}
	out, _, _ = asks(t, f, m, "", false, "status", "-o", "json")
	if !strings.Contains(out, `"away": 1`) || !strings.Contains(out, `"removed": 4`) {
		t.Errorf("for programs it says\n%s", out)
	}
	out, _, _ = asks(t, f, nil, "", false, "status")
	if strings.Contains(out, "machine") {
		t.Errorf("a daemon that is no head says\n%s", out)
	}
}

// TestAnOutputThatIsLost: the others are listed and read, and it is an error to ask for it, or for all.
func TestAnOutputThatIsLost(t *testing.T) {
	t.Parallel()
	f := apitest.New()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("it is here"), 0o600); err != nil {
		t.Fatal(err)
	}
	good, lost := job.Token{Epoch: 1, Seq: 1}, job.Token{Epoch: 1, Seq: 2}
	f.OutputList = []status.Output{{Token: good, Range: job.Range{To: 5}, Path: dir, Files: []string{"x"}, Bytes: 10},
		{Token: lost, Range: job.Range{From: 5, To: 10}, Lost: "machine m1: the store has lost it"}}
	for _, c := range []struct {
		args []string
		code int
		out  []string
		errs string
	}{
		{nil, 1, []string{good.String(), lost.String(), "LOST", dir}, "1 of 2 outputs can't be had; the first: machine m1"},
		{[]string{"-o", "json"}, 1, []string{`"lost": "machine m1: the store has lost it"`}, "1 of 2"},
		{[]string{"--subjob", good.String()}, 0, []string{dir}, ""},
		{[]string{"--subjob", lost.String()}, 1, []string{"LOST"}, "1 of 1"},
		{[]string{"--cat"}, 1, nil, "the store has lost it"},
		{[]string{"--cat", "--subjob", good.String()}, 0, []string{"it is here"}, ""},
		{[]string{"--cat", "--subjob", lost.String()}, 1, nil, "the store has lost it"},
	} {
		out, errs, code := asks(t, f, nil, "", false, append([]string{"output", "train"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.errs) || len(c.out) == 0 && out != "" {
			t.Errorf("%v: %d, %q, %q", c.args, code, out, errs)
		}
		for _, want := range c.out {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, out)
			}
		}
	}
}

// TestTokens are made at a head alone, for as long and for whom is said.
func TestTokens(t *testing.T) {
	t.Parallel()
	f, m := clustered()
	for _, c := range []struct {
		args  []string
		asked string
		out   string
	}{
		{nil, " 1h0m0s", "good once, for 1h; on the machine that is to join:\n  sluice join head:7118 --token sluice-join-1-secret\n"},
		{[]string{"-q", "--for", "10m", "--name", "m3"}, "m3 10m0s", "sluice-join-1-secret\n"},
		{[]string{"-o", "json"}, " 1h0m0s", `"head": "head:7118"`},
	} {
		m.asked = nil
		out, errs, code := asks(t, f, m, "", false, append([]string{"token", "create"}, c.args...)...)
		if code != 0 || !strings.Contains(out, c.out) || !slices.Equal(m.asked, []string{c.asked}) {
			t.Errorf("%v: %d, %q, %s; asked %q", c.args, code, out, errs, m.asked)
		}
	}
	if _, errs, code := asks(t, f, m, "", false, "token", "create", "--for", "0s"); code != command.ExitUsage {
		t.Errorf("a token for nothing: %d, %s", code, errs)
	}
	if _, errs, code := asks(t, f, nil, "", false, "token", "create"); code != command.ExitFailed || !strings.Contains(errs, "--cluster") {
		t.Errorf("a daemon that is no head: %d, %s", code, errs)
	}
}

// TestMachinesAreRemovedOnceThatIsMeant.
func TestMachinesAreRemovedOnceThatIsMeant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		args     []string
		terminal bool
		in       string
		code     int
		err      string
		removed  []job.NodeID
	}{
		{"a person says yes", []string{"m1"}, true, "y\n", command.ExitOK, "m1 is taken out of the cluster for good", []job.NodeID{"m1"}},
		{"a person says nothing", []string{"m1"}, true, "\n", command.ExitFailed, "nothing was done", nil},
		{"a script", []string{"m1"}, false, "", command.ExitUsage, "give --yes", nil},
		{"a script that means it", []string{"m1", "m2", "--yes"}, false, "", command.ExitOK, "", []job.NodeID{"m1", "m2"}},
		{"one that is none", []string{"m7", "m2", "--yes"}, false, "", command.ExitFailed, `m7: no machine "m7" has joined`,
			[]job.NodeID{"m2"}},
	} {
		f, m := clustered()
		_, errs, code := asks(t, f, m, c.in, c.terminal, append([]string{"nodes", "remove"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.err) || !slices.Equal(m.removed, c.removed) {
			t.Errorf("%s: %d, %s; removed %v", c.name, code, errs, m.removed)
		}
	}
}

// TestNodesAreDrained slice by slice, those that are not drained yet, and undrained by the drains alone.
func TestNodesAreDrained(t *testing.T) {
	t.Parallel()
	f, m := clustered()
	if out, errs, code := asks(t, f, m, "", false, "nodes", "drain", "m1"); code != 0 || out != "m1 drained\n" {
		t.Fatalf("%d, %s%s", code, out, errs)
	}
	if r := f.Reserved(); r.Slice != "m1/gpu0" || r.Kind != protocol.ForDrain || r.Source == "" {
		t.Errorf("it reserves %+v", r)
	}
	if n := calls(f, "reserve"); n != 1 {
		t.Errorf("%d reservations, want 1: one slice is drained already", n)
	}
	if out, errs, code := asks(t, f, m, "", false, "nodes", "undrain", "m1"); code != 0 || calls(f, "unreserve") != 1 {
		t.Errorf("%d, %s%s: %d withdrawn, want the drain alone", code, out, errs, calls(f, "unreserve"))
	}
	_, errs, code := asks(t, f, m, "", false, "nodes", "drain", "m7")
	if code != command.ExitFailed || !strings.Contains(errs, "m7: no slice") {
		t.Errorf("a node that is none: %d, %s", code, errs)
	}
}

// calls is how often a fake was called so.
func calls(f *apitest.Fake, name string) (n int) {
	for _, c := range f.Calls() {
		if strings.HasPrefix(c, name) {
			n++
		}
	}
	return n
}
