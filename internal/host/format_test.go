package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

func TestUnknownDataIsNotTouched(t *testing.T) {
	for _, c := range []struct {
		name, file, content string
		kind                errkind.Kind
		says                string
	}{
		{"a newer format", formatName, "sluice data 99\n", errkind.Unsupported, `"sluice data 99"`},
		{"an empty format", formatName, "", errkind.Unsupported, `""`},
		{"somebody's files", "thesis.tex", "x", errkind.Unsupported, `"thesis.tex"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			if err := os.MkdirAll(r.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(r.dir, c.file)
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := r.open(); errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want kind %v naming %s", err, c.kind, c.says)
			}
			data, err := os.ReadFile(path)
			if got := names(t, r.dir); err != nil || string(data) != c.content || !slices.Equal(got, []string{c.file}) {
				t.Errorf("the directory was touched: %q %v", got, err)
			}
		})
	}
}

func TestNewDirectoryIsBegun(t *testing.T) {
	r := newRig(t)
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// As a death between the lock and the format leaves it.
	for _, n := range []string{lockName, formatTemp} {
		if err := os.WriteFile(filepath.Join(r.dir, n), []byte("slu"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(r.dir, formatName))
	if err != nil || string(data) != format+"\n" {
		t.Errorf("FORMAT is %q, %v", data, err)
	}
}

func TestTwoDaemons(t *testing.T) {
	r := newRig(t)
	h, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.open(); errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("second daemon: got %v, want a conflict naming pid %d", err, os.Getpid())
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h, err = r.open()
	if err != nil {
		t.Fatalf("after the first has gone: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFactsOfAnotherNodeAreRefused(t *testing.T) {
	r := newRig(t)
	h, stop := r.start(t)
	if _, err := h.Submit(context.Background(), "r", spec("a"), nil); err != nil {
		t.Fatal(err)
	}
	h.heard(protocol.Message{Kind: protocol.Settled})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// The gate's facts have no name in them; the zone's and node's do.
	first := r.actors
	r.actors = func() actor.Set {
		return actor.Alone("other", "other", &toyGate{toy{step: accept}}, &toyZone{}, &toyNode{})
	}
	h, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	a := h.actors.Nodes[0].Node.(*toyNode)
	a.step = func(a *toy, _ quantity.Instant, _ protocol.Message, out *protocol.Out) {
		a.fact(out, protocol.Fact{Kind: protocol.Booted, Epoch: 1})
	}
	h.step(2, &protocol.Message{Kind: protocol.Tick})
	if err := h.append(); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	r.actors = first
	if _, err := r.open(); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "node other") {
		t.Errorf("got %v, want an error of kind invalid naming node other", err)
	}
}
