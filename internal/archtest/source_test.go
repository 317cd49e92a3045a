package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// Sorted is the comment that allows a range over a map in the core, on the line above it or at its end. It goes on with
// the reason why the order cannot be seen: the keys are collected and sorted, or the result is the same in any order.
const Sorted = "//sluice:sorted"

// MapRanges finds loops over a map in a type-checked file: their order differs from run to run, and a decision that
// hangs on it cannot be replayed.
func MapRanges(fset *token.FileSet, file *ast.File, info *types.Info) []string {
	excused, bad := excuses(fset, file, Sorted, "why the order cannot be seen")
	ast.Inspect(file, func(n ast.Node) bool {
		loop, ok := n.(*ast.RangeStmt)
		if !ok || info.TypeOf(loop.X) == nil {
			return true
		}
		at := fset.Position(loop.Pos())
		if isMap(info.TypeOf(loop.X)) && !excused[at.Line] {
			bad = append(bad, fmt.Sprintf("%s: range over a map: iterate sorted keys, or say with %s why the order cannot be seen", at,
				Sorted))
		}
		return true
	})
	return bad
}

// excuses are the lines that a comment with this mark allows, its own and the next, and its uses without a reason.
func excuses(fset *token.FileSet, file *ast.File, mark, why string) (excused map[int]bool, bad []string) {
	excused = map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			reason, ok := strings.CutPrefix(c.Text, mark)
			if !ok {
				continue
			}
			at := fset.Position(c.Pos())
			if len(strings.Fields(reason)) < 3 {
				bad = append(bad, fmt.Sprintf("%s: %s says no reason: add %s", at, mark, why))
			}
			excused[at.Line], excused[at.Line+1] = true, true
		}
	}
	return excused, bad
}

// isMap says whether t is a map, or a type parameter that may be one.
func isMap(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Map:
		return true
	case *types.Interface:
		for i := range u.NumEmbeddeds() {
			if union, ok := u.EmbeddedType(i).(*types.Union); ok {
				for j := range union.Len() {
					if isMap(union.Term(j).Type()) {
						return true
					}
				}
			}
		}
	}
	return false
}

// StructTags finds struct tags: what a value is called on a wire or in a file is not the core's business.
func StructTags(fset *token.FileSet, file *ast.File) []string {
	var bad []string
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && f.Tag != nil {
			bad = append(bad, fmt.Sprintf("%s: struct tag in the core: give the type of the wire or the config its own struct",
				fset.Position(f.Tag.Pos())))
		}
		return true
	})
	return bad
}

// Goroutines finds what would make a step depend on scheduling: go statements, channels and select.
func Goroutines(fset *token.FileSet, file *ast.File) []string {
	var bad []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
			bad = append(bad, fmt.Sprintf("%s: goroutine or channel in the core: a step is one function call", fset.Position(n.Pos())))
		}
		return true
	})
	return bad
}

// PackageComments finds folders without exactly one package comment over their files (tests apart).
func PackageComments(folder string, files []*ast.File) []string {
	n := 0
	for _, f := range files {
		if f.Doc != nil {
			n++
		}
	}
	switch {
	case len(files) == 0 || n == 1:
		return nil
	case n == 0:
		return []string{folder + ": no package comment: say what the package is and what it must not know"}
	}
	return []string{fmt.Sprintf("%s: %d package comments: one place, one text", folder, n)}
}
