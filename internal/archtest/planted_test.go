package archtest

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// want checks that there is one violation for each text, in order, and that it contains the text.
func want(t *testing.T, got []string, texts ...string) {
	t.Helper()
	if len(got) != len(texts) {
		t.Fatalf("got %d violations, want %d:\n%s", len(got), len(texts), strings.Join(got, "\n"))
	}
	for i, text := range texts {
		if !strings.Contains(got[i], text) {
			t.Errorf("violation %d: got %q, want it to contain %q", i, got[i], text)
		}
	}
}

func imports(path string, imps ...string) Package {
	p := Package{Path: path}
	for _, i := range imps {
		if strings.HasPrefix(i, "internal/") || strings.HasPrefix(i, "cmd/") || strings.HasPrefix(i, "sdk") {
			i = Module + "/" + i
		}
		p.Imports = append(p.Imports, i)
	}
	return p
}

func TestPlantedImports(t *testing.T) {
	for name, c := range map[string]struct {
		rule func([]Package) []string
		pkgs []Package
		want []string
	}{
		"down is fine": {Direction, []Package{
			imports("cmd/sluice", "internal/face/cli"), imports("internal/face/cli", "internal/edge/journal", "internal/core/job", "os"),
			imports("internal/drive/host", "internal/drive/sim", "internal/edge/tape"), imports("internal/archtest", "internal/face/cli"),
		}, nil},
		"edge to drive":   {Direction, []Package{imports("internal/edge/wire", "internal/drive/host")}, []string{"arrows point down only"}},
		"core to edge":    {Direction, []Package{imports("internal/core/job", "internal/edge/journal")}, []string{"internal/edge is above internal/core"}},
		"face to cmd":     {Direction, []Package{imports("internal/face/cli", "cmd/sluice")}, []string{"arrows point down only"}},
		"core to no wing": {Direction, []Package{imports("internal/core/job", "internal/archtest")}, []string{"none of the wings"}},

		"levels":         {CoreLevels, []Package{imports("internal/core/zone", "internal/core/market", "internal/core/job", "slices"), imports("internal/core/policy/fifo", "internal/core/policy")}, nil},
		"actor to actor": {CoreLevels, []Package{imports("internal/core/zone", "internal/core/node")}, []string{"level 9"}},
		"upward":         {CoreLevels, []Package{imports("internal/core/trp", "internal/core/job")}, []string{"trp stands on level 3"}},
		"unknown":        {CoreLevels, []Package{imports("internal/core/helpers")}, []string{`add "helpers"`}},

		"siblings": {Siblings, []Package{
			imports("internal/edge/executor/process", "internal/edge/executor", "internal/edge/executor/shim", "internal/edge/executor/process/ns"),
			imports("internal/edge/executor/fake", "internal/edge/executor/process"),
		}, []string{"executor/fake imports its sibling"}},
		"siblings of two points": {Siblings, []Package{imports("internal/edge/executor/process", "internal/edge/journal/local")}, nil},

		"tables": {Tables, []Package{
			imports("internal/edge/journal/all", "internal/edge/journal/local"), imports("internal/edge/journal/local"),
			imports("internal/edge/journal/memory"), imports("internal/edge/journal/journaltest"), imports("internal/edge/fabric/memory"),
			imports("internal/face/cli", "internal/edge/journal/all"), imports("bench/live", "internal/edge/journal/all"), imports("internal/drive/host", "internal/edge/journal/all"),
		}, []string{"drive/host imports the table", "journal/memory is not in the table"}},

		"forbidden": {Forbids, []Package{
			imports("internal/drive/sim", "internal/core/zone", "internal/core/timeline"),
			imports("internal/drive/host", "k8s.io/api/core/v1"), imports("internal/face/operator", "k8s.io/api/core/v1"),
		}, []string{"second scheduler", "Kubernetes stops"}},
	} {
		t.Run(name, func(t *testing.T) { want(t, c.rule(c.pkgs), c.want...) })
	}
	want(t, Supervisor([]string{"os", "internal/abi", Module + "/internal/edge/executor/shim", "golang.org/x/sys/unix", "github.com/spf13/cobra", "golang.org/x/tools/go/ast"}),
		"github.com/spf13/cobra", "golang.org/x/tools")
}

// check parses and type-checks one planted file.
func check(t *testing.T, src string) (*token.FileSet, *ast.File, *types.Info) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "planted.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: importer.Default()}
	if _, err := conf.Check("planted", fset, []*ast.File{f}, info); err != nil {
		t.Fatal(err)
	}
	return fset, f, info
}

func TestPlantedMapRanges(t *testing.T) {
	fset, f, info := check(t, `package planted

type set map[string]int

func all(s set, g map[int]int, l []int) (n int) {
	for range l {
		n++
	}
	for range s {
		n++
	}
	//sluice:sorted a count is the same in any order
	for range s {
		n++
	}
	for k := range g { //sluice:sorted a sum is the same in any order
		n += k
	}
	//sluice:sorted
	for k := range g {
		n += k
	}
	return n
}

func generic[M ~map[K]V, K comparable, V any](m M) (n int) {
	for range m {
		n++
	}
	return n
}
`)
	want(t, MapRanges(fset, f, info), "planted.go:19:2: //sluice:sorted says no reason", "planted.go:9:2: range over a map", "planted.go:27:2: range over a map")
}

func TestPlantedSource(t *testing.T) {
	fset, f, _ := check(t, "package planted\n\ntype a struct {\n\tB int `json:\"b\"`\n\tC int\n}\n\nfunc run(c chan int) {\n\tgo run(nil)\n\tc <- 1\n}\n")
	want(t, StructTags(fset, f), "planted.go:4:8")
	want(t, Goroutines(fset, f), "planted.go:8:12", "planted.go:9:2", "planted.go:10:2")

	fset, f, _ = check(t, `package planted

import (
	"os"
	"path/filepath"
)

func tidy(dir string) error {
	_ = filepath.WalkDir(dir, nil)
	_ = os.Chmod(dir, 0) //sluice:trusted made by this function and closed to all
	//sluice:trusted
	_ = os.RemoveAll(dir)
	do := os.RemoveAll
	return do(dir)
}
`)
	want(t, TreeWalks(fset, f), "planted.go:11:2: //sluice:trusted says no reason", "planted.go:9:6: filepath.WalkDir follows links", "planted.go:13:8: os.RemoveAll")

	want(t, PackageComments("x", []*ast.File{f}), "no package comment")
	doc := &ast.File{Doc: &ast.CommentGroup{}}
	want(t, PackageComments("x", []*ast.File{f, doc}))
	want(t, PackageComments("x", []*ast.File{doc, doc}), "2 package comments")
}

func TestPlantedFiles(t *testing.T) {
	long := []byte("package x\n" + strings.Repeat("\n", MaxLines))
	want(t, Length("x.go", long), "601 lines")
	want(t, Length("x.go", long[1:len(long)-1]))
	want(t, Length("x.go", append([]byte("// Code generated by hand. DO NOT EDIT.\n\n"), long...)))

	index := "[one](0001-one.md) [three](0003-three.md)"
	want(t, Decisions(index, []string{"README.md", "0001-one.md", "0003-three.md"}), "next number is 0002")
	want(t, Decisions(index, []string{"0001-one.md", "0002-two.md"}), "0002-two.md is not linked")
	want(t, Decisions(index, []string{"0001-one.md", "notes.md"}), "want a name like")

	exists := func(name string) bool { return name == "docs/A.md" || name == "README.md" }
	want(t, Links("docs/B.md", "[a](A.md#x) [r](../README.md) [w](https://example.org/x) [h](#here)\n```\n[x](y)\n```\n", exists))
	want(t, Links("docs/B.md", "[a](C.md) and [b](/README.md)", exists), "C.md", "/README.md")
}
