package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

const addressUsage = "where other machines reach this one, for members of gangs: a host's name or an IP"

// checkPlace says what is wrong with where the machine is said to be. A machine that joins is one node: its file may place it too.
func (o *Options) checkPlace() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if a := o.Address; a != "" {
		ip, err := netip.ParseAddr(a)
		switch {
		case err == nil && ip.IsUnspecified():
			wrong("--address %s: stands for any address: give the one that other machines reach this one at", a)
		case err != nil && strings.Contains(a, ":"), !protocol.SoundAddress(a):
			wrong("--address %.80q: want a host's name or an IP such as gpu7.example or 10.0.0.7, without a port", a)
		}
	}
	for _, f := range [][2]string{{"--rack", o.Rack}, {"--block", o.Block}} {
		if f[1] != "" && !job.ValidName(f[1]) {
			wrong("%s %.80q: want %s", f[0], f[1], job.NameRule)
		}
	}
	if o.Join && max(o.File.Nodes, o.File.Zones) > 1 {
		wrong("%s: a machine that joins is one node of its head's zone: leave zones out, and nodes, or say where the one stands, "+
			"nodes: [{rack: r1, block: b1}]", o.Config)
	}
	if err := o.canBorrow(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}

// location is where a machine that joins stands: as flags say, else its file.
func (o *Options) location() arrangement.Location {
	var l arrangement.Location
	if len(o.File.Places) > 0 {
		l = o.File.Places[0]
	}
	return arrangement.Location{Rack: cmp.Or(o.Rack, l.Rack), Block: cmp.Or(o.Block, l.Block)}
}

// ownAddress is where other machines reach a daemon that none has to join: as it is said, else where they call it; empty where none does.
func (o *Options) ownAddress() string {
	if o.Address != "" || o.Cluster == "" {
		return o.Address
	}
	host, _, err := net.SplitHostPort(reached(o.Cluster))
	if err != nil || !protocol.SoundAddress(host) {
		return ""
	}
	return host
}

// lookFor is how long this machine's own name is looked up at its start.
const lookFor = 3 * time.Second

// memberAddress is where other machines reach one that joins: as it is said, else its end of the connection to its head. That is one of its
// own where the head is on this machine too: then it is the host's name, if that leads anywhere.
func memberAddress(ctx context.Context, said string, local net.IP) string {
	switch {
	case said != "":
		return said
	case local == nil:
		return ""
	case !local.IsLoopback() && !local.IsLinkLocalUnicast():
		return local.String()
	}
	ctx, end := context.WithTimeout(ctx, lookFor)
	defer end()
	name, err := os.Hostname()
	if err == nil && protocol.SoundAddress(name) {
		if _, err = net.DefaultResolver.LookupHost(ctx, name); err == nil {
			return name
		}
	}
	return local.String()
}

// canBorrow says what of the options forbids providers.
func (o *Options) canBorrow() error {
	if len(o.File.Providers) == 0 || o.Cluster != "" {
		return nil
	}
	why := "pilots join the head of a cluster: start it with --cluster HOST:PORT"
	if o.Join {
		why = "a machine that joins asks nobody for others: put them in its head's file"
	}
	return errkind.Errorf(errkind.Invalid, "%s: providers: %s, or leave them out", o.Config, why)
}
