package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// root of the repository, as seen from this package's folder, where go test runs.
const root = "../.."

// report fails the test with each violation on its own line.
func report(t *testing.T, bad []string) {
	t.Helper()
	for _, b := range bad {
		t.Error(b)
	}
}

// goList runs go list in the repository root and returns its output.
func goList(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// tree reads the packages of the module with their imports, and with what is behind a tag.
func tree(t *testing.T) []Package {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(goList(t, "-tags", "s3,etcd,kubernetes", "-json=ImportPath,Imports,TestImports,XTestImports",
		"./...")))
	var pkgs []Package
	for {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, Package{Path: inner(p.ImportPath), Imports: p.Imports, TestImports: append(p.TestImports, p.XTestImports...)})
	}
	if len(pkgs) < 10 {
		t.Fatalf("go list found %d packages: the rules would check nothing", len(pkgs))
	}
	return pkgs
}

func TestImports(t *testing.T) {
	pkgs := tree(t)
	for name, rule := range map[string]func([]Package) []string{
		"direction": Direction, "core levels": CoreLevels, "fence": Fence, "siblings": Siblings, "tables": Tables, "forbidden": Forbids,
		"pure": Pure, "pure tests": PureTests,
	} {
		t.Run(name, func(t *testing.T) { report(t, rule(pkgs)) })
	}
}

func TestSupervisorStaysSmall(t *testing.T) {
	if sources, _ := filepath.Glob(filepath.Join(root, "cmd/sluice-shim/*.go")); len(sources) == 0 {
		t.Skip("cmd/sluice-shim has no sources in this tree")
	}
	report(t, Supervisor(strings.Fields(goList(t, "-deps", "./cmd/sluice-shim"))))
	report(t, Supervisor(strings.Fields(goList(t, "-deps", "-tags", "kubernetes", "./cmd/sluice-shim"))))
}

// TestWhatIsBehindATag: who builds sluice without a tag gets nothing of what is behind it, and who builds it with one does.
func TestWhatIsBehindATag(t *testing.T) {
	plain := strings.Fields(goList(t, "-deps", "./cmd/sluice"))
	report(t, Without("cmd/sluice", plain, "k8s.io"))
	for tag, behind := range map[string]struct{ library, table string }{
		"s3": {"github.com/minio", "/internal/edge/store/all"}, "etcd": {"go.etcd.io/etcd", "/internal/edge/journal/all"},
	} {
		report(t, Without("cmd/sluice", plain, behind.library))
		tagged := Without("cmd/sluice", strings.Fields(goList(t, "-deps", "-tags", tag, "./cmd/sluice")), behind.library)
		if len(tagged) == 0 && reaches(t, "./cmd/sluice", Module+behind.table) {
			t.Errorf("with the tag %s it does not reach %s either: the rule checks nothing", tag, behind.library)
		}
	}
}

// reaches says whether a program has a package in it.
func reaches(t *testing.T, program, pkg string) bool {
	t.Helper()
	return slices.Contains(strings.Fields(goList(t, "-deps", program)), pkg)
}

func TestTheWalkNamesWhatExists(t *testing.T) {
	report(t, Hops(string(read(t, "docs/ARCHITECTURE.md")), func(name string) (string, bool) {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		return string(content), err == nil
	}))
}

// TestWhatIsReadFirst: the files that CONTRIBUTING begins with are there, and an entry of the change log is no page.
func TestWhatIsReadFirst(t *testing.T) {
	report(t, Reading(string(read(t, "CONTRIBUTING.md")), exists))
	report(t, Changes(string(read(t, "CHANGELOG.md"))))
}

func TestTheTablesListWhatExists(t *testing.T) {
	report(t, Stale(exists))
}

// exists says whether a file or folder of the repository is there.
func exists(name string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
	return err == nil
}

func TestEveryDependencyHasAReason(t *testing.T) {
	report(t, Dependencies(string(read(t, "go.mod")), string(read(t, "docs/adr/0007-dependencies.md"))))
}

func TestThePageNamesEveryPackage(t *testing.T) {
	var names []string
	for _, p := range tree(t) {
		names = append(names, p.Path)
	}
	report(t, Page(string(read(t, "docs/ARCHITECTURE.md")), names))
}

func TestCoreIsPure(t *testing.T) {
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for _, dir := range Deterministic {
		patterns = append(patterns, "./"+dir+"/...")
	}
	pkgs, err := packages.Load(&packages.Config{
		Dir: root,
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedExportFile,
	}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Errorf("%s: %v", p.PkgPath, e)
		}
		if isSuite(p.PkgPath) {
			continue // conformance suites are test code
		}
		for _, f := range p.Syntax {
			checked++
			report(t, MapRanges(p.Fset, f, p.TypesInfo))
			report(t, MapIterators(p.Fset, f, p.TypesInfo))
			name, err := filepath.Rel(top, p.Fset.Position(f.Pos()).Filename)
			if err != nil {
				t.Fatal(err)
			}
			report(t, Floats(filepath.ToSlash(name), p.Fset, f, p.TypesInfo))
			report(t, StructTags(p.Fset, f))
			report(t, Goroutines(p.Fset, f))
		}
	}
	if checked < 10 {
		t.Errorf("%d files of the core were checked: the search is broken", checked)
	}
}

// skipped folders hold no source of ours.
func skipped(name string) bool {
	return name != "." && name != ".ci" && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules" ||
		name == "__pycache__")
}

// walk calls visit for every file of the repository with its slash-separated path from the root.
func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a file that another test made and removed
		case err != nil:
			return err
		case d.IsDir() && skipped(d.Name()):
			return fs.SkipDir
		case !d.IsDir():
			visit(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSources(t *testing.T) {
	folders := map[string][]*ast.File{}
	fset := token.NewFileSet()
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "/testdata/") {
			return
		}
		content := read(t, name)
		report(t, Length(name, content))
		report(t, Width(name, content))
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		f, err := parser.ParseFile(fset, name, content, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Error(err)
			return
		}
		if Generated(content) {
			return // a folder of generated code alone needs no comment of ours
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		folders[dir] = append(folders[dir], f)
	})
	if len(folders) < 10 {
		t.Errorf("%d folders with Go files found: the search is broken", len(folders))
	}
	for dir, files := range folders {
		report(t, PackageComments(dir, files))
	}
}

// TestSubjobsTrees: what may run as root handles the trees of subjobs in one way only.
func TestSubjobsTrees(t *testing.T) {
	fset := token.NewFileSet()
	checked := 0
	walk(t, func(name string) {
		handles := strings.HasPrefix(name, "internal/edge/executor/process/") || strings.HasPrefix(name, "internal/edge/executor/shim/") ||
			strings.HasPrefix(name, "internal/edge/store/")
		if !handles || strings.HasPrefix(name, "internal/edge/store/") && strings.Contains(name, "test/") ||
			!strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, "internal/edge/executor/shim/foreign/") {
			return
		}
		f, err := parser.ParseFile(fset, name, read(t, name), parser.ParseComments)
		if err != nil {
			t.Error(err)
			return
		}
		checked++
		report(t, TreeWalks(fset, f))
	})
	if checked < 10 {
		t.Errorf("%d files were checked: the search is broken", checked)
	}
}

func TestDocuments(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, "docs/adr"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	report(t, Decisions(string(read(t, "docs/adr/README.md")), names))

	walk(t, func(name string) {
		if strings.HasSuffix(name, ".md") {
			report(t, Links(name, string(read(t, name)), exists))
			report(t, Paths(name, string(read(t, name)), exists))
		}
	})
}
