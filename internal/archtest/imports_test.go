package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Module is the import path all our packages begin with.
const Module = "sluice.dev/sluice"

// Package is what the import rules look at: Path relative to Module ("internal/core/job"), and the import paths of its
// files without tests; TestImports are those of its tests.
type Package struct {
	Path                 string
	Imports, TestImports []string
}

// inner returns the path of an import relative to the module, or "" if it is not ours.
func inner(imp string) string {
	rest, ok := strings.CutPrefix(imp, Module+"/")
	if !ok {
		return ""
	}
	return rest
}

// under says whether p is dir or lies below it.
func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// wings are the parts of the program, each with those that it may import besides itself. Arrows point down only: what people
// see, the live driver, the real world, the core; and beside the first two the lab, which decides nothing live and is
// imported by nothing live.
var wings = []struct {
	dir   string
	below []string
}{
	{"cmd", []string{"api", "internal/face", "internal/lab", "internal/host", "internal/edge", "internal/core"}},
	{"internal/face", []string{"api", "internal/host", "internal/edge", "internal/core"}},
	{"internal/lab", []string{"internal/edge", "internal/core"}},
	{"internal/host", []string{"internal/edge", "internal/core"}},
	{"internal/edge", []string{"api", "internal/core"}},
	{"internal/core", nil},
	{"api", nil}, // what others may import: it knows nothing of this program
}

// wingOf is the index into wings, or -1 for what stands outside them (archtest, sdk, examples).
func wingOf(p string) int {
	for i, w := range wings {
		if under(p, w.dir) {
			return i
		}
	}
	return -1
}

// Direction finds imports that do not point down.
func Direction(pkgs []Package) []string {
	var bad []string
	for _, p := range pkgs {
		from := wingOf(p.Path)
		for _, imp := range p.Imports {
			to := wingOf(inner(imp))
			switch {
			case inner(imp) == "" || from < 0 || from == to:
			case to < 0:
				bad = append(bad, fmt.Sprintf("%s imports %s, which is in none of the wings", p.Path, imp))
			case !slices.Contains(wings[from].below, wings[to].dir):
				bad = append(bad, fmt.Sprintf("%s imports %s: arrows point down only, and %s is not below %s", p.Path, imp, wings[to].dir,
					wings[from].dir))
			}
		}
	}
	return bad
}

// coreLevel orders the packages of the core from the arithmetic up; a package may import lower levels and its own
// extension point. A folder of a package may stand on a level of its own: what a market is made of lies below the jobs that bid
// in it, and the market above. The three actors share the top level and never import each other: they talk in messages.
var coreLevel = map[string]int{
	"indices": 0, "errkind": 0, "digest": 0, "prng": 0, "invariant": 1, "quantity": 2, "alarm": 3, "outbox": 4, "filing": 5, "bitset": 3,
	"health": 3, "dirty": 3, "ranking": 3, "tally": 3, "mig": 3, "civil": 3, "trp": 3, "joint": 4, "job": 4, "starts": 5, "reclaim": 5,
	"supply": 5, "pilot": 6, "forecast": 4, "ends": 5, "federation/flow": 5, "protocol": 6, "airlock": 6, "status": 7, "timeline": 7,
	"score": 7, "market/trust": 8, "market/clearing": 7, "gang": 7, "federation/loan": 7, "policy": 8, "atomizer": 8, "capture": 7,
	"departure": 8, "foresight": 8, "actor": 8, "federation/search": 8, "federation/visits": 9, "gate/jobs": 8, "gate/queues": 8,
	"gate/names": 8, "gate/stock": 9, "federation/drain": 9, "federation/homes": 10, "market": 9, "home": 9, "home/view": 10,
	"backfill": 10, "federation/floor": 10, "federation/lend": 11, "federation/borrow": 11, "federation/seek": 11,
	"gate": 12, "zone": 12, "node": 12, "arrangement": 13,
}

// CoreLevels finds imports inside the core that point up or sideways between packages of one level.
func CoreLevels(pkgs []Package) []string {
	var bad []string
	for _, p := range pkgs {
		rest, ok := strings.CutPrefix(p.Path, "internal/core/")
		if !ok || isSuite(p.Path) {
			continue
		}
		from, own := levelOf(rest)
		if own < 0 {
			bad = append(bad, fmt.Sprintf("%s has no level: add %q to coreLevel in internal/archtest/imports_test.go", p.Path, from))
			continue
		}
		for _, imp := range p.Imports {
			rest, ok := strings.CutPrefix(inner(imp), "internal/core/")
			to, level := levelOf(rest)
			if !ok || to == from || strings.Split(to, "/")[0] == strings.Split(from, "/")[0] && !under(from, "federation") {
				continue
			}
			if level >= own {
				bad = append(bad, fmt.Sprintf("%s imports %s: %s stands on level %d of the core, %s on %d", p.Path, imp, from, own, to,
					level))
			}
		}
	}
	return bad
}

// federation is the wing of the core that only several zones or tickets need. One zone that offers windows is read without it: what the
// rest of the core is made of does not import it.
const federation = "internal/core/federation"

// federates are the packages of the core that know of the wing, and why.
var federates = map[string]string{
	"internal/core/protocol":     "the bodies of its messages",
	"internal/core/gate":         "draws homes by what zones say of themselves",
	"internal/core/zone":         "is home to tickets and to gangs that borrow",
	"internal/core/node":         "has the floors at nodes",
	"internal/core/node/tickets": "answers probes",
	"internal/core/arrangement":  "makes actors of what people choose",
}

// Fence finds packages of the core that import the wing federation and are not among those that know of it.
func Fence(pkgs []Package) []string {
	var bad []string
	for _, p := range pkgs {
		if !under(p.Path, "internal/core") || under(p.Path, federation) || federates[p.Path] != "" {
			continue
		}
		for _, imp := range p.Imports {
			if under(inner(imp), federation) {
				bad = append(bad, fmt.Sprintf("%s imports %s: one zone has none of it", p.Path, imp))
			}
		}
	}
	return bad
}

// levelOf is the level of a package of the core and what it is listed under: itself, else the folder that it is in; -1 if neither
// is.
func levelOf(path string) (name string, level int) {
	if level, known := coreLevel[path]; known {
		return path, level
	}
	name = strings.Split(path, "/")[0]
	if level, known := coreLevel[name]; known {
		return name, level
	}
	return name, -1
}

// extension points, and the folders below them that are no kinds, with the reason.
var extensionPoints = map[string][]string{
	// what planners are made of: those that decide about time, and (place) those about places
	"internal/lab/planner":    {"book", "ends", "greedy", "head", "place", "pool", "preempt", "queue", "ranked"},
	"internal/core/policy":    nil,
	"internal/edge/archive":   nil,
	"internal/edge/executor":  {"shim"}, // files and layout that the process kind shares with the supervisor
	"internal/edge/fabric":    nil,
	"internal/edge/inventory": nil,
	"internal/edge/journal":   {"disk"}, // the file system that a log is written to
	// what the kinds in a file system share; directories as objects
	"internal/edge/store": {"files", "tree"},
	// what the kernel says, for all kinds; the process beside the daemon that uses a kind
	"internal/edge/survival": {"sense", "watch"},
	// theory beside them, what a call takes, queues, and the simulator that drives them
	"internal/lab/swarm": {"fluid", "meter", "queue", "world"},
	"internal/lab/trace": nil,
}

// unlisted are kinds that are in no table, and why.
var unlisted = map[string]string{
	"internal/edge/store/head": "it takes a client with a machine's certificate, which no line of text can name",
}

// kindOf splits the path of a kind into extension point and kind; ok is false for everything else, the table (all) and
// the conformance suite (<point>test) included.
func kindOf(p string) (point, kind string, ok bool) {
	for x, others := range extensionPoints {
		rest, below := strings.CutPrefix(p, x+"/")
		if !below {
			continue
		}
		kind = strings.Split(rest, "/")[0]
		if kind == "all" || kind == path.Base(x)+"test" || slices.Contains(others, kind) {
			return x, "", false
		}
		return x, kind, true
	}
	return "", "", false
}

// Siblings finds kinds of one extension point that import each other: what two kinds share belongs to the point.
func Siblings(pkgs []Package) []string {
	var bad []string
	for _, p := range pkgs {
		point, kind, ok := kindOf(p.Path)
		if !ok {
			continue
		}
		for _, imp := range p.Imports {
			point2, kind2, ok2 := kindOf(inner(imp))
			if ok2 && point == point2 && kind != kind2 {
				bad = append(bad, fmt.Sprintf("%s imports its sibling %s: what they share belongs into %s", p.Path, imp, point))
			}
		}
	}
	return bad
}

// Tables finds kinds that their extension point's table (x/all) does not import, and imports of a table by anything but
// the command line and the programs. Points without a table yet have nothing to be in.
func Tables(pkgs []Package) []string {
	var bad []string
	table := map[string]*Package{}
	for i, p := range pkgs {
		if path.Base(p.Path) == "all" {
			table[path.Dir(p.Path)] = &pkgs[i]
		}
		for _, imp := range p.Imports {
			if path.Base(inner(imp)) == "all" && !under(p.Path, "internal/face/cli") && !under(p.Path, "internal/lab/cli") &&
				!under(p.Path, "cmd") && !under(p.Path, "bench") {
				bad = append(bad, fmt.Sprintf("%s imports the table %s: only the commands, cmd, bench and tests may choose among kinds",
					p.Path, imp))
			}
		}
	}
	for _, p := range pkgs {
		point, kind, ok := kindOf(p.Path)
		if !ok || p.Path != point+"/"+kind || table[point] == nil || slices.Contains(Kubernetes, p.Path) || unlisted[p.Path] != "" {
			continue
		}
		if !slices.Contains(table[point].Imports, Module+"/"+p.Path) {
			bad = append(bad, fmt.Sprintf("%s is not in the table %s/all: add its line", p.Path, point))
		}
	}
	return bad
}

// Forbidden is one import that a part of the tree may not have, and why.
type Forbidden struct {
	// In is the folder the rule is for; Except are folders below it that it is not for.
	In     string
	Except []string
	// Import is the forbidden path with everything below it, relative to the module for our own packages.
	Import string
	Why    string
}

// Kubernetes are the folders that may import its client. What is there is behind the build tag of that name, and the kinds among them are
// the operator's, but that of provider: a head is configured with it.
var Kubernetes = []string{"internal/edge/executor/kubernetes", "internal/edge/inventory/kubernetes", "internal/face/operator",
	"internal/lab/live/kubernetes", "internal/edge/provider/kubernetes", "test/kube"}

// forbidden imports that the order of wings does not already exclude.
var forbidden = []Forbidden{
	{In: "internal/lab/sim", Import: "internal/core/market", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/lab/sim", Import: "internal/lab/planner", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/lab/sim", Import: federation, Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/lab/swarm/world", Import: federation, Why: "the world knows no mechanism"},
	{In: "internal/lab/sim", Import: "internal/lab/swarm", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/lab/sim", Import: "internal/core/backfill", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/lab/sim", Import: "internal/core/home", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/lab/sim", Import: "internal/core/timeline", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/host", Import: "internal/core/market", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/host", Import: "internal/core/backfill", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/host", Import: "internal/core/home", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/host", Import: "internal/core/policy", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/host", Import: "internal/core/timeline", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "internal/host", Import: "internal/core/atomizer", Why: "a driver that knows how to schedule is a second scheduler"},
	{In: "", Except: []string{"internal/edge/store/s3"}, Import: "github.com/minio", Why: "only the kind s3 of store knows S3"},
	{In: "", Except: []string{"internal/edge/journal/etcd"}, Import: "go.etcd.io/etcd", Why: "only the kind etcd of journal knows etcd"},
	{In: "", Except: Kubernetes, Import: "k8s.io",
		Why: "only the operator, the kinds kubernetes and what watches for a forecast talk to Kubernetes"},
}

// Forbids finds imports that the table forbids.
func Forbids(pkgs []Package) []string {
	var bad []string
	for _, p := range pkgs {
		for _, rule := range forbidden {
			if rule.In != "" && !under(p.Path, rule.In) ||
				slices.ContainsFunc(rule.Except, func(e string) bool { return under(p.Path, e) }) {
				continue
			}
			for _, imp := range p.Imports {
				if under(imp, rule.Import) || under(inner(imp), rule.Import) {
					bad = append(bad, fmt.Sprintf("%s imports %s: %s", p.Path, imp, rule.Why))
				}
			}
		}
	}
	return bad
}

// Supervisor finds third-party packages in the closure of the supervisor's imports: it lives as long as a subjob, one
// process each, and stays a few MiB with the standard library and golang.org/x/sys.
func Supervisor(closure []string) []string {
	var bad []string
	for _, imp := range closure {
		first, _, _ := strings.Cut(imp, "/")
		if strings.Contains(first, ".") && !under(imp, Module) && !under(imp, "golang.org/x/sys") {
			bad = append(bad, fmt.Sprintf("cmd/sluice-shim reaches %s: standard library and golang.org/x/sys only", imp))
		}
	}
	return bad
}

// Without finds what a closure of imports must not have in it, by its prefixes.
func Without(program string, closure []string, unwanted ...string) []string {
	var bad []string
	for _, imp := range closure {
		if slices.ContainsFunc(unwanted, func(u string) bool { return under(imp, u) }) {
			bad = append(bad, fmt.Sprintf("%s reaches %s, which belongs behind a build tag", program, imp))
		}
	}
	return bad
}
