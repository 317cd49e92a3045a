package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// The bounds of a type, a struct, a package and of how its files refer to each other. A larger type owns too much for one reader; a
// package whose files refer to each other in circles has no file to begin with.
const (
	maxMethods = 40
	maxFields  = 25
	maxPackage = 4000 // lines without tests and generated code
	maxBack    = 10   // percent of references from file to file that run against the best order of files
)

// Of what is above these bounds the exceptions may stay so: at most so many types and structs, none of them with more than maxExcepted
// methods or fields.
const (
	maxTypes    = 5
	maxStructs  = 8
	maxExcepted = 60
)

// Exception is a type ("methods") or a struct ("fields") that may stay above its bound, and why: what a user writes or reads as one thing
// (a spec, an answer, options, metrics) is one struct.
type Exception struct{ What, Name, Why string }

// exceptions today.
var exceptions = []Exception{
	{"fields", "internal/core/job.Spec", "all that a user says of a job, as one file has it"},
	{"fields", "internal/core/status.Job", "all that `sluice job` answers about one job"},
	{"fields", "internal/core/protocol.Errand", "a ticket, which has 22 of its own, and what its home wants for it"},
	{"fields", "internal/edge/executor/shim.Lease", "one file on disk, whose keys every supervisor that still runs reads"},
	{"fields", "internal/edge/executor/shim/pod.Run", "one file in a Pod, whose keys a runner of before reads"},
}

// Except takes the exceptions out of what is above its bound. It says which of them are too many, too large, without a reason, or of what
// is within its bound.
func Except(now []Excess, list []Exception) (left []Excess, bad []string) {
	left = slices.Clone(now)
	count := map[string]int{}
	for _, x := range list {
		count[x.What]++
		i := slices.IndexFunc(left, func(e Excess) bool { return e.What == x.What && e.Name == x.Name })
		switch {
		case i < 0:
			bad = append(bad, fmt.Sprintf("%s %s is within its bound, or is not there: take its exception out", x.What, x.Name))
			continue
		case left[i].Count > maxExcepted:
			bad = append(bad, fmt.Sprintf("%v is excepted and has more than %d: split it", left[i], maxExcepted))
		case len(strings.Fields(x.Why)) < 3:
			bad = append(bad, fmt.Sprintf("%s %s is excepted without a reason", x.What, x.Name))
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, of := range []struct {
		what string
		most int
	}{{"methods", maxTypes}, {"fields", maxStructs}, {"lines", 0}, {"back", 0}} {
		if n := count[of.what]; n > of.most {
			bad = append(bad, fmt.Sprintf("%d exceptions of %s, more than %d", n, of.what, of.most))
		}
	}
	return left, bad
}

// Excess is one thing that is larger than its bound.
type Excess struct {
	What  string // "methods", "fields", "lines" or "back"
	Name  string // of a type or a package, from the module's root
	Count int
}

func (e Excess) String() string { return fmt.Sprintf("%s %s %d", e.What, e.Name, e.Count) }

// Excesses measures a type-checked package. lines are those of its files that are no generated code.
func Excesses(p *packages.Package, lines int, generated func(file string) bool) []Excess {
	name := inner(p.PkgPath)
	var out []Excess
	note := func(what, of string, n, most int) {
		if n > most {
			out = append(out, Excess{what, of, n})
		}
	}
	takes := takers(p)
	scope := p.Types.Scope()
	for _, n := range scope.Names() {
		o, ok := scope.Lookup(n).(*types.TypeName)
		if !ok || o.IsAlias() || generated(p.Fset.Position(o.Pos()).Filename) {
			continue
		}
		switch u := o.Type().Underlying().(type) {
		case *types.Struct:
			note("methods", name+"."+n, methods(o.Type())+takes[o], maxMethods)
			note("fields", name+"."+n, fields(u, p.Types), maxFields)
		case *types.Interface:
			note("methods", name+"."+n, u.NumMethods(), maxMethods)
		}
	}
	note("lines", name, (lines+99)/100*100, maxPackage) // by hundreds: not each change of such a package moves its number
	back, all := Back(references(p))
	if all > 0 {
		note("back", name, (100*back+all-1)/all, maxBack)
	}
	return out
}

// methods counts those of a type and of what it embeds, as far as the module wrote them.
func methods(of types.Type) (n int) {
	for m := range types.NewMethodSet(types.NewPointer(of)).Methods() {
		if pkg := m.Obj().Pkg(); pkg != nil && strings.HasPrefix(pkg.Path()+"/", Module+"/") {
			n++
		}
	}
	return n
}

// fields counts a struct's fields, those of the package's structs that it embeds with them: a struct in parts is as large as before.
func fields(s *types.Struct, pkg *types.Package) (n int) {
	for f := range s.Fields() {
		inner, ok := f.Type().Underlying().(*types.Struct)
		if f.Embedded() && ok && f.Pkg() == pkg {
			n += fields(inner, pkg)
		} else {
			n++
		}
	}
	return n
}

// takers counts the functions of a package that take a struct of it as parameter: a method by another name.
func takers(p *packages.Package) map[*types.TypeName]int {
	out := map[*types.TypeName]int{}
	scope := p.Types.Scope()
	for _, n := range scope.Names() {
		f, ok := scope.Lookup(n).(*types.Func)
		if !ok {
			continue
		}
		seen := map[*types.TypeName]bool{}
		for v := range f.Signature().Params().Variables() {
			t := v.Type()
			if to, ok := t.(*types.Pointer); ok {
				t = to.Elem()
			}
			if named, ok := t.(*types.Named); ok && named.Obj().Pkg() == p.Types && !seen[named.Obj()] {
				seen[named.Obj()] = true
				out[named.Obj()]++
			}
		}
	}
	return out
}

// references are the files that each file of a package names something of: a type, a function, a method, a field.
func references(p *packages.Package) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, f := range p.Syntax {
		from := filepath.Base(p.Fset.Position(f.Pos()).Filename)
		out[from] = map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := p.TypesInfo.Uses[id]
			if o == nil || o.Pkg() != p.Types {
				return true
			}
			if to := filepath.Base(p.Fset.Position(o.Pos()).Filename); to != from {
				out[from][to] = true
			}
			return true
		})
	}
	return out
}

// Back puts the files of a package in an order in which as few references as possible run back up, and counts these among all
// references from file to file. The order is found greedily, as Eades, Lin and Smyth do (A fast and effective heuristic for the
// feedback arc set problem, 1993): the count is an upper bound of the least, and exactly 0 where the files have an order.
func Back(refs map[string]map[string]bool) (back, all int) {
	into := map[string]map[string]bool{}
	for from, list := range refs {
		for to := range list {
			if into[to] == nil {
				into[to] = map[string]bool{}
			}
			into[to][from] = true
		}
	}
	left := map[string]bool{}
	for f := range refs {
		left[f] = true
	}
	for f := range into {
		left[f] = true
	}
	open := func(m map[string]bool) (n int) {
		for f := range m {
			if left[f] {
				n++
			}
		}
		return n
	}
	var head, tail []string
	for len(left) > 0 {
		names := slices.Sorted(maps.Keys(left))
		next := slices.MaxFunc(names, func(a, b string) int {
			return cmp.Or(cmp.Compare(open(refs[a])-open(into[a]), open(refs[b])-open(into[b])), strings.Compare(b, a))
		})
		for _, f := range names {
			if open(into[f]) == 0 {
				next = f
				break
			}
			if open(refs[f]) == 0 {
				tail = append(tail, f)
				next = ""
				delete(left, f)
				break
			}
		}
		if next != "" {
			head = append(head, next)
			delete(left, next)
		}
	}
	slices.Reverse(tail)
	place := map[string]int{}
	for i, f := range append(head, tail...) {
		place[f] = i
	}
	for from, list := range refs {
		for to := range list {
			all++
			if place[to] < place[from] {
				back++
			}
		}
	}
	return back, all
}

// Ratchet compares what is above its bound with what was allowed to be: each may shrink and none may grow, and what has shrunk is
// written down, so that it stays.
func Ratchet(now, allowed []Excess) []string {
	was := map[[2]string]int{}
	for _, e := range allowed {
		was[[2]string{e.What, e.Name}] = e.Count
	}
	var bad []string
	for _, e := range now {
		key := [2]string{e.What, e.Name}
		switch most, ok := was[key]; {
		case !ok:
			bad = append(bad, fmt.Sprintf("%v is above the bound: split it by what it owns", e))
		case e.Count > most:
			bad = append(bad, fmt.Sprintf("%v was %d: it may shrink only", e, most))
		case e.Count < most:
			bad = append(bad, fmt.Sprintf("%v was %d: write it down, go test ./internal/archtest -run Shape -update", e, most))
		}
		delete(was, key)
	}
	for _, e := range allowed {
		if _, ok := was[[2]string{e.What, e.Name}]; ok {
			bad = append(bad, fmt.Sprintf("%v is within its bound now: write it down, go test ./internal/archtest -run Shape -update", e))
		}
	}
	return bad
}
