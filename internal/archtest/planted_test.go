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
			imports("internal/lab/sim", "internal/edge/tape"), imports("internal/host", "internal/edge/tape"),
			imports("internal/archtest", "internal/face/cli"),
		}, nil},
		"edge to host": {Direction, []Package{imports("internal/edge/wire", "internal/host")}, []string{"arrows point down only"}},
		"core to edge": {Direction, []Package{imports("internal/core/job", "internal/edge/journal")},
			[]string{"internal/edge is not below internal/core"}},
		"live to lab": {Direction, []Package{imports("internal/host", "internal/lab/sim"),
			imports("internal/face/cli", "internal/lab/report")},
			[]string{"internal/lab is not below internal/host", "internal/lab is not below internal/face"}},
		"lab to live": {Direction, []Package{imports("internal/lab/cli", "internal/face/cli"),
			imports("internal/lab/sim", "internal/host")},
			[]string{"internal/face is not below internal/lab", "internal/host is not below internal/lab"}},
		"face to cmd":     {Direction, []Package{imports("internal/face/cli", "cmd/sluice")}, []string{"arrows point down only"}},
		"core to no wing": {Direction, []Package{imports("internal/core/job", "internal/archtest")}, []string{"none of the wings"}},

		"levels": {CoreLevels, []Package{imports("internal/core/zone", "internal/core/market", "internal/core/job", "slices"),
			imports("internal/core/policy/shortest", "internal/core/policy")}, nil},
		"actor to actor": {CoreLevels, []Package{imports("internal/core/zone", "internal/core/node")}, []string{"level 12"}},
		"upward":         {CoreLevels, []Package{imports("internal/core/trp", "internal/core/job")}, []string{"trp stands on level 3"}},
		"fence": {Fence, []Package{
			imports("internal/core/zone", "internal/core/federation/search"),
			imports("internal/core/federation/search", "internal/core/federation/flow"),
			imports("internal/core/market", "internal/core/federation/flow"),
			imports("internal/edge/config", "internal/core/federation/flow"),
		}, []string{"internal/core/market imports"}},
		"unknown": {CoreLevels, []Package{imports("internal/core/helpers")}, []string{`add "helpers"`}},

		"siblings": {Siblings, []Package{
			imports("internal/edge/executor/process", "internal/edge/executor", "internal/edge/executor/shim",
				"internal/edge/executor/process/ns"),
			imports("internal/edge/executor/fake", "internal/edge/executor/process"),
		}, []string{"executor/fake imports its sibling"}},
		"siblings of two points": {Siblings, []Package{imports("internal/edge/executor/process", "internal/edge/journal/local")}, nil},

		"tables": {Tables, []Package{
			imports("internal/edge/journal/all", "internal/edge/journal/local"), imports("internal/edge/journal/local"),
			imports("internal/edge/journal/memory"), imports("internal/edge/journal/journaltest"), imports("internal/edge/fabric/memory"),
			imports("internal/face/cli", "internal/edge/journal/all"), imports("bench/live", "internal/edge/journal/all"),
			imports("internal/host", "internal/edge/journal/all"),
		}, []string{"internal/host imports the table", "journal/memory is not in the table"}},

		"forbidden": {Forbids, []Package{
			imports("internal/lab/sim", "internal/core/zone", "internal/core/timeline"),
			imports("internal/host", "k8s.io/api/core/v1", "internal/core/zone", "internal/core/market/clearing"),
		}, []string{"timeline: a driver", "clearing: a driver", "talk to Kubernetes"}},

		"pure": {Pure, []Package{
			imports("internal/core/job", "slices", "internal/core/quantity"), imports("internal/core/policy/policytest", "os",
				"pgregory.net/rapid"),
			imports("internal/core/zone", "os"), imports("internal/core/trp", "gonum.org/v1/gonum/stat"),
			imports("internal/core/gate", "sync", "internal/edge/wire"),
			imports("internal/core/node", "internal/core/policy/policytest"), imports("internal/edge/wire", "os"),
			imports("internal/core/policy/shortest", "os"),
		}, []string{"zone imports os", "gonum", "gate imports sync", "gate imports " + Module + "/internal/edge/wire", "policytest",
			"shortest imports os"}},
		"tests of the core": {PureTests, []Package{
			{Path: "internal/core/zone", TestImports: []string{"testing", "os", "pgregory.net/rapid",
				Module + "/internal/core/policy/all"}},
			{Path: "internal/core/timeline", TestImports: []string{Module + "/internal/lab/trace", Module + "/internal/archtest"}},
			{Path: "internal/edge/wire", TestImports: []string{Module + "/internal/lab/trace"}},
		}, []string{"the tests of internal/core/timeline import " + Module + "/internal/lab/trace"}},
	} {
		t.Run(name, func(t *testing.T) { want(t, c.rule(c.pkgs), c.want...) })
	}
	want(t, Supervisor([]string{"os", "internal/abi", Module + "/internal/edge/executor/shim", "golang.org/x/sys/unix",
		"github.com/spf13/cobra", "golang.org/x/tools/go/ast"}),
		"github.com/spf13/cobra", "golang.org/x/tools")
	want(t, Without("x", []string{"os", "github.com/minion/x", "github.com/minio/minio-go/v7"}, "github.com/minio"),
		"reaches github.com/minio/minio-go/v7")
}

// check parses and type-checks one planted file.
func check(t *testing.T, src string) (*token.FileSet, *ast.File, *types.Info) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "planted.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
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
	want(t, MapRanges(fset, f, info), "planted.go:19:2: //sluice:sorted says no reason", "planted.go:9:2: range over a map",
		"planted.go:27:2: range over a map")
}

func TestPlantedMapIterators(t *testing.T) {
	fset, f, info := check(t, `package planted

import (
	"maps"
	"slices"
)

func all(m map[string]int) (out []string) {
	out = append(out, slices.Sorted(maps.Keys(m))...)
	other := maps.Collect(maps.All(m))
	for k := range maps.Keys(other) {
		out = append(out, k)
	}
	out = slices.Collect(maps.Keys(m))
	each := maps.Values[map[string]int]
	for range each(m) {
	}
	//sluice:sorted a delete is the same in any order
	maps.DeleteFunc(m, func(string, int) bool { return true })
	maps.DeleteFunc(m, func(k string, _ int) bool { out = append(out, k); return false })
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return len(a) - len(b) })
}
`)
	want(t, MapIterators(fset, f, info), "planted.go:11:17: maps.Keys", "planted.go:14:23: maps.Keys", "planted.go:15:10: maps.Values",
		"planted.go:20:2: maps.DeleteFunc")
}

func TestPlantedFloats(t *testing.T) {
	fset, f, info := check(t, `package planted

type share = float32

func half(n int64) int64 {
	const whole = 100
	return int64(float64(n) * 0.5) / whole
}

func parts(n int64) (share, int) {
	x := n / 2
	return share(x), 1e3
}
`)
	want(t, Floats("internal/core/zone/half.go", fset, f, info), "planted.go:3:14", "planted.go:7:", "planted.go:10:", "planted.go:12:")
	want(t, Floats("internal/core/trp/phases.go", fset, f, info))
}

func TestPlantedTables(t *testing.T) {
	want(t, Stale(func(name string) bool {
		return name != "internal/core/forecast" && name != "internal/edge/executor/shim"
	}),
		"coreLevel of internal/archtest names internal/core/forecast",
		"extensionPoints of internal/archtest names internal/edge/executor/shim")
}

func TestPlantedSource(t *testing.T) {
	fset, f, _ := check(t, "package planted\n\ntype a struct {\n\tB int `json:\"b\"`\n\tC int\n}\n\nfunc run(c chan int) {\n\tgo "+
		"run(nil)\n\tc <- 1\n}\n")
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
	want(t, TreeWalks(fset, f), "planted.go:11:2: //sluice:trusted says no reason", "planted.go:9:6: filepath.WalkDir follows links",
		"planted.go:13:8: os.RemoveAll")

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

	exists = func(name string) bool { return name == "internal/core/zone" || name == "test/twin" }
	want(t, Paths("docs/B.md", "`core/zone`, `internal/core/zone`, `test/twin`, `go test ./test/soak`, core/node", exists))
	want(t, Paths("docs/B.md", "`core/node` and `test/soak/x_test.go`", exists), "core/node", "test/soak/x_test.go")
	want(t, Paths("docs/adr/0001-one.md", "`core/node`", exists))
}

func TestHops(t *testing.T) {
	read := func(name string) (string, bool) {
		return "package zone\n\nfunc (z *Zone) ask(now int) {\n}\n\nfunc free() {}\n", name == "internal/core/zone/a.go"
	}
	want(t, Hops("| 1 | x `y` | `zone/a.go` `ask`, `free` |\n", read))
	want(t, Hops("| 1 | x | `zone/a.go` `asks`, `zone/b.go` `c` |\n", read), "asks of internal/core/zone/a.go",
		"internal/core/zone/b.go, which does not exist")
	want(t, Hops("no table", read), "the walk is gone")
}

func TestPlantedPage(t *testing.T) {
	have := []string{"internal/core/job", "internal/core/trp", "cmd/sluice"}
	page := func(rows string) string {
		return "# A\n\n## Every package in one line\n\n" + rows + "\n## Next\n| `no/matter` | x |\n"
	}
	want(t, Page(page("| `core/job` | a |\n| `core/trp` | b |\n\n**around**\n\n| `cmd/sluice` | c |\n"), have))
	want(t, Page("# A\n", have), "no section")
	want(t, Page(page("| `core/trp` | b |\n| `core/job` | a |\n| `core/old` | z |\n"), have),
		"core/job stands behind core/trp", "lists core/old", "what cmd/sluice is")
	want(t, Page(page("| `core/job` | |\n| `core/trp` | b |\n\n| `cmd/sluice` | c |\n"), have), "what core/job is")
}

func TestPlantedDependencies(t *testing.T) {
	mod := "module a.b/c\n\ngo 1.26.0\n\nrequire (\n\tx.org/one v1.0.0\n\tx.org/one/two v1.0.0\n\tx.org/far v1.0.0 // " +
		"indirect\n)\n\nrequire y.io/z v2.1.0\n"
	want(t, Dependencies(mod, "| x.org/one v1.0.0, x.org/one/two | for |\n| y.io/z | for |\n"))
	want(t, Dependencies(mod, "| x.org/one/two | for x.org/one |\n"), "x.org/one:", "y.io/z")
}

func TestPlantedWidth(t *testing.T) {
	wide := strings.Repeat("x", 141)
	want(t, Width("x.go", []byte("package x\n\nvar a = `\n"+wide+"\n`\n\nvar b = \""+wide+"\"\n")))
	want(t, Width("x.go", []byte("// Code generated by hand. DO NOT EDIT.\n\npackage x\n// "+wide+"\n")))
	want(t, Width("x.go", []byte("package x\n\n// "+wide+"\nvar c = \"short\" // "+wide+"\n\n\t\t// "+wide[:130]+"\n")),
		"x.go:3 has 144 columns", "x.go:4", "x.go:6 has 141 columns")
}

func TestReadingAndChanges(t *testing.T) {
	there := func(name string) bool { return name == "internal/core/zone/a.go" }
	line := "   - `zone/a.go`: it begins\n"
	want(t, Reading(strings.Repeat(line, 5), there))
	want(t, Reading(strings.Repeat(line, 4)+"   - `zone/b.go`: it ends\n", there), "internal/core/zone/b.go, which does not exist")
	want(t, Reading(line, there), "1 files to read first")
	want(t, Changes("# Changes\n\n- one\n- two\n  lines\n\n### Fixed\n\nmore\n"))
	want(t, Changes("# Changes\n\n- one\n- three\n  long\n  lines\n"), "3 lines, more than 2: three")
}
