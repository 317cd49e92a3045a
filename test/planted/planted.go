// Package planted plants bugs in copies of production code (bugs.txt), to prove that the kill soak and the tests of packages see
// them. A program built with the overlay has all of them; the environment variable SLUICE_PLANTED names the one that is in.
package planted

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Variable is the environment variable that names the bug of a process.
const Variable = "SLUICE_PLANTED"

// Bug is one planted bug.
type Bug struct {
	Name string
	// Folder and Test are the package's test that sees it; empty: the kill soak does.
	Folder, Test string
	edits        []edit
}

// edit is one change of the text of one file below a folder.
type edit struct{ folder, old, new string }

//go:embed bugs.txt
var text string

// in is what the edited files import: a package that is nowhere but in the overlay.
const in = `// Package planted says which planted bug is in.
package planted

import "os"

var bug = os.Getenv("` + Variable + `")

// In says whether the bug of this name is in, Any whether one is.
func In(name string) bool { return bug == name }
func Any() bool { return bug != "" }

// Environ is what a child process needs to have the same bug in.
func Environ() []string { return []string{"` + Variable + `=" + bug} }
`

// Bugs lists the planted bugs.
func Bugs() []Bug { return read()[1:] }

// read reads bugs.txt. Its first entry is what every bug needs.
func read() []Bug {
	var bugs []Bug
	var b *Bug
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		mark, rest, _ := strings.Cut(line, " ")
		switch {
		case mark == "==":
			name, _, _ := strings.Cut(rest, " ")
			bugs = append(bugs, Bug{Name: name})
			b = &bugs[len(bugs)-1]
		case mark == "seen" && rest != "by the kill soak":
			b.Folder, b.Test, _ = strings.Cut(strings.TrimPrefix(rest, "by "), " ")
		case mark == "in":
			b.edits = append(b.edits, edit{folder: rest})
		case mark == "" || mark == "-" || mark == "+":
			if line == "" {
				continue
			}
			e := &b.edits[len(b.edits)-1]
			if mark != "+" {
				e.old += strings.TrimSpace(line[1:]) + "\n"
			}
			if mark != "-" {
				e.new += strings.ReplaceAll(strings.TrimSpace(line[1:]), "BUG", `planted.In("`+b.Name+`")`) + "\n"
			}
		}
	}
	return bugs
}

// Overlay writes the files with all bugs in into dir, and returns the file there that `go build -overlay` takes. root is the folder of
// the module.
func Overlay(root, dir string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	source, changed := map[string]string{}, map[string]bool{}
	var wrong []error
	for _, b := range read() {
		for _, e := range b.edits {
			var path string
			if path, err = e.apply(root, source); err != nil {
				wrong = append(wrong, fmt.Errorf("planted bug %s: %w: mend its entry in test/planted/bugs.txt", b.Name, err))
				continue
			}
			changed[path] = true
		}
	}
	if len(wrong) > 0 {
		return "", errors.Join(wrong...)
	}
	replace := map[string]string{}
	write := func(path, text string) error {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		return os.WriteFile(replace[path], []byte(text), 0o600)
	}
	clause := regexp.MustCompile(`(?m)^package \w+.*$`)
	for path := range changed {
		text := source[path]
		if strings.Contains(text, "planted.") {
			at := clause.FindStringIndex(text)[1]
			text = text[:at] + "\n\nimport \"sluice.dev/sluice/internal/planted\"\n" + text[at:]
		}
		if err = write(path, text); err != nil {
			return "", err
		}
	}
	if err = write(filepath.Join(root, "internal", "planted", "planted.go"), in); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// apply makes the edit in the text of the one place that it fits, and returns the file.
func (e *edit) apply(root string, source map[string]string) (string, error) {
	lines := strings.Split(strings.TrimSuffix(e.old, "\n"), "\n")
	for i, l := range lines {
		lines[i] = regexp.QuoteMeta(l)
	}
	old := regexp.MustCompile(strings.Join(lines, `[ \t]*\n\s*`))
	where, fits := "", 0
	err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(e.folder)), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		if _, read := source[path]; !read {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			source[path] = string(text)
		}
		if n := len(old.FindAllStringIndex(source[path], -1)); n > 0 {
			where, fits = path, fits+n
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if fits != 1 {
		return "", fmt.Errorf("%d places below %s fit %q", fits, e.folder, e.old)
	}
	source[where] = old.ReplaceAllLiteralString(source[where], strings.TrimSuffix(e.new, "\n"))
	return where, nil
}
