package gang_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAddresses: on one machine members meet there; a node that says none is called by its name.
func TestAddresses(t *testing.T) {
	nodes := []job.NodeID{"a", "b", "c"}
	for _, c := range []struct{ said, want []string }{
		{[]string{"", ""}, []string{"127.0.0.1", "127.0.0.1"}},
		{[]string{"10.0.0.7", "10.0.0.7"}, []string{"127.0.0.1", "127.0.0.1"}},
		{[]string{"10.0.0.7", "fd00::8"}, []string{"10.0.0.7", "fd00::8"}},
		{[]string{"", "10.0.0.8"}, []string{"a", "10.0.0.8"}},
		{[]string{"10.0.0.7", ""}, []string{"10.0.0.7", "b"}},
		{[]string{"10.0.0.7", "10.0.0.8", "10.0.0.7"}, []string{"10.0.0.7", "10.0.0.8", "10.0.0.7"}},
	} {
		if got := gang.Addresses(nodes[:len(c.said)], c.said); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.said, got, c.want)
		}
	}
}

// TestPorts: a port is in the range; as many tokens of a node in a row as it has ports have different ones, and so have the first of two
// boots.
func TestPorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(1024, 65535).Draw(t, "first")
		p := gang.Ports{First: first, Last: rapid.IntRange(first, min(65535, first+300)).Draw(t, "last")}
		token := job.Token{Epoch: rapid.Uint32().Draw(t, "epoch"), Seq: rapid.Uint64Max(1<<62).Draw(t, "sequence")}
		seen := map[int]bool{}
		for range p.Last - p.First + 1 {
			at := p.Of(token)
			if at < p.First || at > p.Last || seen[at] {
				t.Fatalf("%v has port %d of %+v, had before %v", token, at, p, seen)
			}
			seen[at] = true
			token.Seq++
		}
	})
	now, next := job.Token{Epoch: 7, Seq: 1}, job.Token{Epoch: 8, Seq: 1}
	if p := gang.DefaultPorts(); p.Of(now) == p.Of(next) {
		t.Errorf("the first gangs of two boots of a node have port %d both", p.Of(now))
	}
	if (gang.Ports{}).Of(job.Token{Seq: 7}) != 0 {
		t.Error("there is a port where none was chosen")
	}
	for p, want := range map[gang.Ports]bool{gang.DefaultPorts(): true, {}: false, {First: 80, Last: 90}: false,
		{First: 2000, Last: 1999}: false, {First: 65000, Last: 65536}: false} {
		if p.Valid() != want {
			t.Errorf("%+v is a range: %v", p, p.Valid())
		}
	}
}

// TestSoundAddress: what a machine says of itself goes into environments elsewhere.
func TestSoundAddress(t *testing.T) {
	for text, want := range map[string]bool{"host-1.example_2": true, "10.0.0.7": true, "fd00::8": true, "": false, "a,b": false,
		"a b": false, "-a": false, "a\n": false, "fe80::1%eth0": false, "ä": false, "http://a": false, string(make([]byte, 254)): false} {
		if got := protocol.SoundAddress(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
