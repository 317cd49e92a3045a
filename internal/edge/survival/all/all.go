// Package all is the ordered table of the kinds of survival, and how one is chosen. Only the command line and the programs import it.
package all

import (
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/cgroup"
	"sluice.dev/sluice/internal/edge/survival/tree"
)

const (
	// Auto takes the first kind that can suspend a subjob.
	Auto = "auto"
	// Off is none: nobody looks at the machine's memory.
	Off = "off"
)

// Kind is one kind of survival.
type Kind struct {
	// Name in the configuration; Help is one line for people.
	Name, Help string
	// Open makes one. base is the control group of version 2 in which those of subjobs are made; empty: where their supervisors make them.
	Open func(base string) (survival.Survival, error)
}

// Kinds lists every kind, in the order Auto tries them.
func Kinds() []Kind {
	return []Kind{
		{Name: cgroup.Name, Help: "the kernel freezes a subjob's control group, counts what it has and moves that to swap",
			Open: cgroup.Open},
		{Name: tree.Name, Help: "a subjob's processes are stopped and continued by signals, and keep what they have", Open: tree.Open},
	}
}

// Names are all that may be asked for, for people.
func Names() string {
	names := []string{Auto}
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return strings.Join(append(names, Off), ", ")
}

// Detect opens the kind of a name: nil for Off. Auto (or nothing) takes the first that can do more than look on, else the last that opens;
// where none opens there is none, and why says so. A kind that is asked for by its name must open.
func Detect(name, base string) (s survival.Survival, why string, err error) {
	return detect(name, base, Kinds())
}

func detect(name, base string, kinds []Kind) (s survival.Survival, why string, err error) {
	if name == Off {
		return nil, "off: key airlock of the daemon's file says so", nil
	}
	if name != "" && name != Auto {
		for _, k := range kinds {
			if k.Name == name {
				if s, err = k.Open(base); err != nil {
					return nil, "", err
				}
				return s, s.Capability().String(), nil
			}
		}
		return nil, "", errkind.Errorf(errkind.Invalid, "there is no kind of survival %q: want one of %s", name, Names())
	}
	var missing []string
	for _, k := range kinds {
		next, err := k.Open(base)
		if err != nil {
			missing = append(missing, err.Error())
			continue
		}
		if s != nil {
			_ = s.Close()
		}
		if s = next; s.Capability().Level > survival.Observe {
			break
		}
	}
	if s == nil {
		return nil, "none: " + strings.Join(missing, "; "), nil
	}
	return s, s.Capability().String(), nil
}
