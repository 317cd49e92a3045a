package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// Trusted is the comment that allows a call which follows links where privileged code handles files, on the line above it
// or at its end. It goes on with the reason why nobody else can put a link there.
const Trusted = "//sluice:trusted"

// follows are the functions that follow links somewhere in a tree, or do to a name what was decided about something that
// had that name before.
func follows() map[string][]string {
	return map[string][]string{
		"os":       {"Chmod", "Chown", "CopyFS", "DirFS", "RemoveAll"},
		"filepath": {"Walk", "WalkDir"},
	}
}

// TreeWalks finds calls that are a way out of a tree which somebody else's program owns (package foreign).
func TreeWalks(fset *token.FileSet, file *ast.File) []string {
	excused, bad := excuses(fset, file, Trusted, "why nobody else can put a link there")
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := call.X.(*ast.Ident)
		if !ok || !slices.Contains(follows()[from.Name], call.Sel.Name) {
			return true
		}
		if at := fset.Position(call.Pos()); !excused[at.Line] {
			bad = append(bad, fmt.Sprintf("%s: %s.%s follows links, and may run as root in a subjob's tree: use package foreign, or say "+
				"with %s why nobody else can put one there",
				at, from.Name, call.Sel.Name, Trusted))
		}
		return true
	})
	return bad
}
