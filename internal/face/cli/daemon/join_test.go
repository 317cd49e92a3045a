package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/fabric/stream"
	"sluice.dev/sluice/internal/edge/membership"
	"sluice.dev/sluice/internal/host/datadir"
)

// cluster is a head's part that lets machines join; it returns its address and a token.
func cluster(t *testing.T) (address, token string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	a, err := authority.Open(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	links := stream.NewHead(stream.HeadOptions{Caller: membership.Caller(a, nil), Owns: membership.Owns(a), Log: log})
	s, err := membership.Listen("127.0.0.1:0", membership.HeadOptions{Authority: a, Head: links, Log: log,
		Settings: func(job.NodeID) membership.Settings { return membership.Settings{} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := links.Close(); err != nil {
			t.Error(err)
		}
	})
	if token, err = a.NewToken("", time.Hour, time.Now()); err != nil {
		t.Fatal(err)
	}
	return s.Addr(), token
}

// TestADataDirectoryIsOfOneKind: one that a daemon with jobs has is refused for a machine before its token is used up, and a machine's for
// a daemon with jobs.
func TestADataDirectoryIsOfOneKind(t *testing.T) {
	address, token := cluster(t)
	join := func(data string) (*membership.Membership, error) {
		o := &Options{Name: "m", Head: address, Invitation: token, Log: slog.New(slog.DiscardHandler)}
		return belong(t.Context(), o, data, true, nil)
	}
	for _, part := range []string{datadir.ArchiveDir, authorityDir} {
		data := t.TempDir()
		for _, dir := range []string{part, datadir.JournalDir} {
			if err := os.Mkdir(filepath.Join(data, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(data, "FORMAT"), []byte("sluice data 9\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := join(data); errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "--data") {
			t.Errorf("with %s: %v", part, err)
		}
		if _, err := os.Stat(filepath.Join(data, membershipDir)); !os.IsNotExist(err) {
			t.Errorf("with %s: it has asked to join: %v", part, err)
		}
		if err := neverJoined(data); err != nil {
			t.Errorf("with %s a daemon is refused: %v", part, err)
		}
		if note := ledBefore(data); strings.Contains(note, "--cluster") != (part == authorityDir) {
			t.Errorf("with %s a daemon that is no head says %q of its cluster", part, note)
		}
	}
	data := t.TempDir()
	for range 2 {
		if _, err := join(data); err != nil {
			t.Fatal(err)
		}
	}
	_, err := openWhole(t.Context(), Options{DataDir: data, Log: slog.New(slog.DiscardHandler)})
	if errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "sluice join --data "+data) {
		t.Errorf("a daemon with the data directory of a machine: %v", err)
	}
}

// TestOwnNames: of several nodes each has its own, at each of the daemon's names.
func TestOwnNames(t *testing.T) {
	for _, c := range []struct {
		names           []job.NodeID
		nodes           []job.NodeID
		haveAll, hadAll []job.NodeID
	}{
		{[]job.NodeID{"a"}, []job.NodeID{"a"}, []job.NodeID{"a"}, nil},
		{[]job.NodeID{"a", "b"}, []job.NodeID{"b"}, []job.NodeID{"b"}, []job.NodeID{"a"}},
		{[]job.NodeID{"a", "b"}, []job.NodeID{"b-1", "b-2"}, []job.NodeID{"b", "b-1", "b-2"}, []job.NodeID{"a", "a-1", "a-2"}},
	} {
		var nodes []node.Config
		for _, id := range c.nodes {
			nodes = append(nodes, node.Config{ID: id})
		}
		have, had := ownNames(c.names, nodes)
		for _, l := range []*[]job.NodeID{&have, &had} {
			slices.Sort(*l)
			*l = slices.Compact(*l)
		}
		if !slices.Equal(have, c.haveAll) || !slices.Equal(had, c.hadAll) {
			t.Errorf("%v with nodes %v: have %v, had %v", c.names, c.nodes, have, had)
		}
	}
}

// TestAHeadWhoseStoreCantBeOpened lets go of all that it has opened.
func TestAHeadWhoseStoreCantBeOpened(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "store"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{DataDir: data, Name: "head", Cluster: "127.0.0.1:0", GPUs: "sim:custom,mem=1Gi", Mechanism: "sja", Horizon: time.Hour,
		Log: slog.New(slog.DiscardHandler)}
	for range 2 { // the data directory is free again
		if _, err := openWhole(t.Context(), o); err == nil || !strings.Contains(err.Error(), "store") {
			t.Fatalf("%v", err)
		}
	}
	c, err := openHead(&o, t.TempDir(), []job.NodeID{"head"}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if err = c.close(); err != nil {
		t.Fatal(err)
	}
	at := protocol.Address{Role: protocol.Gate}
	if err := c.links.Attach(at, func(protocol.Message) {}); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("its links are not closed: %v", err)
	}
}
