package daemon

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/host/datadir"
)

// names are all names that the machine has had in a data directory, the present one last: --name, else the one that the directory keeps,
// else the host's.
func (o *Options) names(data string, open func(dir string) (journal.Journal, error)) ([]job.NodeID, error) {
	kept, err := datadir.KeptNames(data, max(1, o.File.Zones, o.File.Nodes), open)
	if err != nil {
		return nil, err
	}
	return o.called(kept)
}

// called are the names that were kept, with the present one last.
func (o *Options) called(names []job.NodeID) ([]job.NodeID, error) {
	kept := len(names) > 0
	switch name := job.NodeID(o.Name); {
	case kept && (name == "" || name == names[len(names)-1]):
	case name != "" && !job.ValidName(name) && !slices.Contains(names, name):
		return nil, errkind.Errorf(errkind.Invalid, "--name: is %.80q; want %s", name, job.NameRule)
	case name != "": // also one that it had before: that moves to the end
		names = append(slices.DeleteFunc(names, func(n job.NodeID) bool { return n == name }), name)
	default:
		called, err := hostName()
		if err != nil {
			return nil, err
		}
		return []job.NodeID{called}, nil
	}
	if called, err := hostName(); err == nil && o.Name == "" && called != names[len(names)-1] {
		o.Log.Info("the machine keeps the name that its data directory has; --name gives it another",
			"name", string(names[len(names)-1]), "host", string(called))
	}
	return names, nil
}

// hostName is the name of this machine's host without its domain, as far as an id may hold it.
func hostName() (job.NodeID, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("this machine's name, which names its slices (--name gives it one): %w", err)
	}
	return nameOf(name)
}

// nameOf makes a machine's name of a host's.
func nameOf(host string) (job.NodeID, error) {
	name, _, _ := strings.Cut(host, ".")
	if name == "" {
		return "", errkind.Errorf(errkind.Invalid,
			"this machine's host is called %q, which makes no name for its slices: give it one with --name", host)
	}
	return job.NodeID(strings.Map(func(r rune) rune {
		if r == '/' || unicode.IsControl(r) {
			return '-'
		}
		return r
	}, name)), nil
}
