package daemon

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

func TestNamesOfHosts(t *testing.T) {
	for host, want := range map[string]job.NodeID{
		"vm": "vm", "gpu1.example.com": "gpu1", "GPU_1": "GPU_1", "rack/7": "rack-7", "my host": "my host", "a\nb": "a-b",
		"": "", ".local": "",
	} {
		got, err := nameOf(host)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q is called %q, %v; want %q", host, got, err, want)
		}
		if err != nil && (errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "--name")) {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// TestWhichNameCounts: --name before the kept one, that one before the host's; a name of before that is wanted again is the last one.
func TestWhichNameCounts(t *testing.T) {
	own, err := hostName()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kept   []job.NodeID
		wanted string
		want   []job.NodeID
		log    bool
	}{
		{nil, "", []job.NodeID{own}, false},
		{nil, "rig", []job.NodeID{"rig"}, false},
		{[]job.NodeID{own}, "", []job.NodeID{own}, false},
		{[]job.NodeID{"a"}, "", []job.NodeID{"a"}, true},
		{[]job.NodeID{"a"}, "a", []job.NodeID{"a"}, false},
		{[]job.NodeID{"a"}, "b", []job.NodeID{"a", "b"}, false},
		{[]job.NodeID{"a", "b", "c"}, "b", []job.NodeID{"a", "c", "b"}, false},
		{[]job.NodeID{"GPU_1"}, "GPU_1", []job.NodeID{"GPU_1"}, false}, // said as it is, though none could be given
		{[]job.NodeID{"GPU_1", "b"}, "GPU_1", []job.NodeID{"b", "GPU_1"}, false},
		{[]job.NodeID{"a"}, "GPU_1", nil, false},
		{nil, "-a", nil, false},
		{nil, strings.Repeat("a", 64), nil, false},
	} {
		var log bytes.Buffer
		o := Options{Name: c.wanted, Log: slog.New(slog.NewTextHandler(&log, nil))}
		got, err := o.called(slices.Clone(c.kept))
		if !slices.Equal(got, c.want) || (err != nil) != (c.want == nil) {
			t.Errorf("%v, --name %q: %v, %v; want %v", c.kept, c.wanted, got, err, c.want)
		}
		if strings.Contains(log.String(), "keeps the name") != c.log {
			t.Errorf("%v, --name %q: the log says %q", c.kept, c.wanted, log.String())
		}
	}
}
