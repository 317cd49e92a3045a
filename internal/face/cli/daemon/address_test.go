package daemon

import (
	"net"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/config"
)

// TestCheckPlace: all that is wrong with where a machine is said to be is said at once.
func TestCheckPlace(t *testing.T) {
	for _, o := range []Options{
		{}, {Address: "gpu7.example"}, {Address: "10.0.0.7"}, {Address: "fd00::7"}, {Rack: "r1", Block: "b1", Join: true},
		{Join: true, File: config.Daemon{Nodes: 1, Places: []arrangement.Location{{Rack: "r1"}}}},
	} {
		if err := o.checkPlace(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for want, o := range map[string]Options{
		"any address": {Address: "0.0.0.0"}, "any address: ": {Address: "::"}, "without a port": {Address: "gpu7:22"},
		"or an IP": {Address: "a,b"}, "an IP such as": {Address: "-x"}, "--rack": {Rack: "R 1"}, "--block": {Block: "B"},
		"is one node":        {Join: true, File: config.Daemon{Nodes: 2}},
		"of its head's zone": {Join: true, File: config.Daemon{Zones: 2}},
	} {
		if err := o.checkPlace(); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	err := (&Options{Address: "a b", Rack: "R", Block: "B"}).checkPlace()
	for _, want := range []string{"--address", "--rack", "--block"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s too", err, want)
		}
	}
}

// TestWhereAMachineStands: flags go before its file.
func TestWhereAMachineStands(t *testing.T) {
	file := config.Daemon{Places: []arrangement.Location{{Rack: "r1", Block: "b1"}}}
	for _, c := range []struct {
		o    Options
		want arrangement.Location
	}{
		{Options{}, arrangement.Location{}},
		{Options{File: file}, arrangement.Location{Rack: "r1", Block: "b1"}},
		{Options{File: file, Rack: "r2"}, arrangement.Location{Rack: "r2", Block: "b1"}},
		{Options{Rack: "r2", Block: "b2"}, arrangement.Location{Rack: "r2", Block: "b2"}},
	} {
		if got := c.o.location(); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.o, got, c.want)
		}
	}
}

// TestAddresses of a head, which knows where it listens, and of a machine, which knows where its calls come from.
func TestAddresses(t *testing.T) {
	for _, c := range []struct{ address, cluster, want string }{
		{"", "", ""}, {"gpu7", "", "gpu7"}, {"gpu7", "10.0.0.7:7118", "gpu7"}, {"", "10.0.0.7:7118", "10.0.0.7"},
		{"", "[fd00::7]:7118", "fd00::7"}, {"", "head.example:7118", "head.example"},
	} {
		if got := (&Options{Address: c.address, Cluster: c.cluster}).ownAddress(); got != c.want {
			t.Errorf("--address %q --cluster %q: %q, want %q", c.address, c.cluster, got, c.want)
		}
	}
	if got := (&Options{Cluster: "0.0.0.0:7118"}).ownAddress(); got == "0.0.0.0" {
		t.Error("any address is none")
	}
	for _, c := range []struct {
		said  string
		local net.IP
		want  string
	}{
		{"gpu7", net.IPv4(10, 0, 0, 7), "gpu7"}, {"", net.IPv4(10, 0, 0, 7), "10.0.0.7"}, {"", net.ParseIP("fd00::7"), "fd00::7"},
		{"", nil, ""},
	} {
		if got := memberAddress(t.Context(), c.said, c.local); got != c.want {
			t.Errorf("--address %q, from %v: %q, want %q", c.said, c.local, got, c.want)
		}
	}
	if got := memberAddress(t.Context(), "", net.IPv4(127, 0, 0, 1)); got == "" {
		t.Error("a machine on its head's host has no address")
	}
}
