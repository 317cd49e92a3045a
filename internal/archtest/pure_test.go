package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// coreMayImport is what a step may be made of besides the core itself: an allow-list, because a harmless-looking helper
// that reaches for os would pass a list of what is forbidden.
var coreMayImport = []string{"cmp", "errors", "fmt", "iter", "maps", "math", "math/bits", "slices", "sort", "strconv", "strings", "time"}

// Deterministic are the trees that calculate and do nothing else: the core, the planners that it is compared with, and the lean
// world with its mechanisms.
var Deterministic = []string{"internal/core", "internal/lab/planner", "internal/lab/cluster", "internal/lab/agenda", "internal/lab/swarm"}

// inCore says whether a package belongs to them proper: conformance suites are test code.
func inCore(p string) bool {
	return slices.ContainsFunc(Deterministic, func(dir string) bool { return under(p, dir) }) && !isSuite(p)
}

// isSuite says whether a package is a conformance suite: it lies in what it tests and is called after it (store/storetest).
func isSuite(p string) bool { return path.Base(p) == path.Base(path.Dir(p))+"test" }

// Pure finds what the core imports besides itself and coreMayImport. Every package of the core is looked at, so what it
// reaches through another of them is found too.
func Pure(pkgs []Package) []string {
	var bad []string
	for _, p := range pkgs {
		if !inCore(p.Path) {
			continue
		}
		for _, imp := range p.Imports {
			switch to := inner(imp); {
			case to == "" && slices.Contains(coreMayImport, imp):
			case to != "" && inCore(to):
			default:
				bad = append(bad, fmt.Sprintf("%s imports %s: the core may import itself and %s", p.Path, imp,
					strings.Join(coreMayImport, ", ")))
			}
		}
	}
	return bad
}

// PureTests finds tests of the core that import a wing above it: what they show needs the world, and belongs there.
func PureTests(pkgs []Package) []string {
	var bad []string
	for _, p := range pkgs {
		if !under(p.Path, "internal/core") {
			continue
		}
		for _, imp := range p.TestImports {
			if to := inner(imp); wingOf(to) >= 0 && !under(to, "internal/core") {
				bad = append(bad, fmt.Sprintf("the tests of %s import %s: a test of the core needs nothing above it; move the test up",
					p.Path, imp))
			}
		}
	}
	return bad
}

// unordered are the functions of package maps that visit a map in its own order; ordering those of slices and maps that take
// such an iterator and show nothing of its order.
var (
	unordered = []string{"All", "Keys", "Values", "DeleteFunc"}
	ordering  = map[string][]string{"slices": {"Sorted", "SortedFunc", "SortedStableFunc"}, "maps": {"Collect", "Insert"}}
)

// MapIterators finds uses of package maps whose order differs from run to run: those that do not go straight into a
// function of ordering. Sorted excuses one, as it does a range over a map.
func MapIterators(fset *token.FileSet, file *ast.File, info *types.Info) []string {
	excused, _ := excuses(fset, file, Sorted, "") // MapRanges finds those without a reason
	var bad []string
	sorted := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if slices.Contains(ordering["slices"], of(info, n.Fun, "slices")) ||
				slices.Contains(ordering["maps"], of(info, n.Fun, "maps")) {
				for _, arg := range n.Args {
					if call, ok := arg.(*ast.CallExpr); ok {
						sorted[call.Fun] = true
					}
				}
			}
		case *ast.SelectorExpr:
			name, at := of(info, n, "maps"), fset.Position(n.Pos())
			if slices.Contains(unordered, name) && !sorted[n] && !excused[at.Line] {
				bad = append(bad, fmt.Sprintf("%s: maps.%s has another order in every run: sort it at once (slices.Sorted), or say with "+
					"%s why the order cannot be seen", at, name, Sorted))
			}
		}
		return true
	})
	return bad
}

// of is the name of the function of a package of the standard library that an expression names, or "".
func of(info *types.Info, e ast.Expr, pkg string) string {
	if index, ok := e.(*ast.IndexExpr); ok {
		e = index.X
	}
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	f, ok := info.Uses[sel.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg().Path() != pkg {
		return ""
	}
	return f.Name()
}

// floats are the files of the core that may calculate with floating-point numbers, and why: two kinds of processor may
// round them differently, so what they decide must leave as integers.
var floats = map[string]string{
	"internal/core/federation/flow/weights.go": "powers that are not 1, rounded to millionths; with the defaults there are none",
	"internal/core/home/view/view.go":          "for people",
	"internal/core/score/features.go":          "features of a score, rounded to millionths as they are returned",
	"internal/core/market/trust/trust.go":      "exp(-kappa e), rounded to millionths, and an e-value, kept as its logarithm in them",
	"internal/lab/planner/place/bestfit.go":    "as published: its noise decides between equals, and the rows are compared",
	"internal/lab/planner/place/dotproduct.go": "as published: its noise decides between equals, and the rows are compared",
	"internal/lab/planner/ranked/f1.go":        "logarithms, as learned and published; the score is rounded to millionths",
	"internal/lab/planner/fgd/fgd.go":          "a table made once and rounded to integers",
	"internal/lab/planner/place/scale.go":      "as published, for the two planners above",
	"internal/lab/swarm/fluid/model.go":        "theory, for people: it is drawn beside what is simulated",
	"internal/lab/swarm/world/draw.go":         "draws of lengths and gaps, rounded to nanoseconds",
	"internal/core/prng/prng.go":               "draws for workloads; no actor draws a float",
	"internal/core/status/status.go":           "for people, who decide nothing with it here",
	"internal/core/trp/ensemble.go":            "a quantile of the beta distribution, rounded to bytes in a table",
	"internal/core/trp/excess.go":              "a chance, for people",
	"internal/core/trp/phases.go":              "quantiles, rounded up to bytes in a table",
	"internal/core/trp/peak.go": "the mean and the deviation of a peak, rounded up to bytes, and quantiles, to " +
		"millionths",
}

// Floats finds floating-point numbers in a file of the core that is not listed. name is relative to the repository.
func Floats(name string, fset *token.FileSet, file *ast.File, info *types.Info) []string {
	if _, ok := floats[name]; ok {
		return nil
	}
	var bad []string
	last := 0
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok || !isFloat(info.TypeOf(e)) {
			return true
		}
		if at := fset.Position(e.Pos()); at.Line != last { // once a line
			last = at.Line
			bad = append(bad, fmt.Sprintf("%s: floating point in the core: calculate with integers, or list the file in "+
				"internal/archtest/pure_test.go with how its results leave it", at))
		}
		return false
	})
	return bad
}

func isFloat(t types.Type) bool {
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsFloat|types.IsComplex) != 0
}
