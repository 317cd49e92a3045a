package archtest

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxLines is the largest a source file may be: one file, one idea.
const MaxLines = 600

// Length checks one Go file against MaxLines; generated files are as long as they are.
func Length(name string, content []byte) []string {
	lines := bytes.Count(content, []byte("\n"))
	if lines <= MaxLines || Generated(content) {
		return nil
	}
	return []string{fmt.Sprintf("%s has %d lines, more than %d: split it by idea", name, lines, MaxLines)}
}

// MaxColumns is the widest a source line may be; a tab counts as 4.
const MaxColumns = 140

// Width checks the lines of one Go file against MaxColumns. A literal can't be broken: lines of a raw string, and those that hold a
// string longer than half of a line, are as wide as they are.
func Width(name string, content []byte) []string {
	if Generated(content) {
		return nil
	}
	literal := map[int]bool{}
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, 0)
	for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
		if tok == token.STRING && (text[0] == '`' || len(text) > MaxColumns/2) {
			for i := range strings.Count(text, "\n") + 1 {
				literal[file.Line(pos)+i] = true
			}
		}
	}
	var bad []string
	line := 0
	for text := range strings.Lines(string(content)) {
		line++
		columns := utf8.RuneCountInString(strings.TrimSuffix(text, "\n")) + 3*strings.Count(text, "\t")
		if columns > MaxColumns && !literal[line] {
			bad = append(bad, fmt.Sprintf("%s:%d has %d columns, more than %d", name, line, columns, MaxColumns))
		}
	}
	return bad
}

// Generated says whether a Go file carries the standard mark of generated code before its package clause.
func Generated(content []byte) bool {
	head, _, _ := bytes.Cut(content, []byte("\npackage "))
	return regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`).Match(head)
}

// Decisions checks docs/adr: every decision is linked from the index, numbers are used once and have no holes.
func Decisions(index string, names []string) []string {
	var bad []string
	names = slices.Sorted(slices.Values(names))
	want := 1
	for _, name := range names {
		if name == "README.md" {
			continue
		}
		var number int
		if _, err := fmt.Sscanf(name, "%04d-", &number); err != nil {
			bad = append(bad, fmt.Sprintf("docs/adr/%s: want a name like 0007-what-was-decided.md", name))
			continue
		}
		if number != want {
			bad = append(bad, fmt.Sprintf("docs/adr/%s: the next number is %04d", name, want))
			want = number
		}
		want++
		if !strings.Contains(index, "("+name+")") {
			bad = append(bad, fmt.Sprintf("docs/adr/%s is not linked from docs/adr/README.md", name))
		}
	}
	return bad
}

// Dependencies checks that ADR 0007 has a line for every module that go.mod requires for itself.
func Dependencies(mod, table string) []string {
	var bad []string
	for _, m := range regexp.MustCompile(`(?m)^(?:require )?\s*([a-z0-9.-]+\.[a-z]+/\S+) v\S+$`).FindAllStringSubmatch(mod, -1) {
		if !regexp.MustCompile(`(?m)^\|[^|]*` + regexp.QuoteMeta(m[1]) + `[ ,][^|]*\|`).MatchString(table) {
			bad = append(bad, fmt.Sprintf("docs/adr/0007-dependencies.md has no line for %s: say what it is for, and why this one", m[1]))
		}
	}
	return bad
}

// Links finds relative links of a Markdown file that point to nothing. exists is asked with a slash-separated path from
// the root of the repository.
func Links(name, text string, exists func(string) bool) []string {
	var bad []string
	fence := regexp.MustCompile("(?ms)^```.*?^```$")
	for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		if to := path.Join(path.Dir(name), target); strings.HasPrefix(target, "/") || !exists(to) {
			bad = append(bad, fmt.Sprintf("%s links to %s, which does not exist", name, m[1]))
		}
	}
	return bad
}

// Paths finds files and folders of the repository that a document names, `like/this`, and that are not there. Below internal the
// wing is enough. Decisions and the change log speak of their time, and are not asked.
func Paths(name, text string, exists func(string) bool) []string {
	var bad []string
	if strings.HasPrefix(name, "docs/adr/") || name == "CHANGELOG.md" {
		return nil
	}
	for _, m := range regexp.MustCompile(
		"`((?:internal|cmd|test|bench|sdk|tools|docs|core|edge|lab|host|face)/[\\w./-]*\\w)`").FindAllStringSubmatch(text, -1) {
		if !exists(m[1]) && !exists("internal/"+m[1]) {
			bad = append(bad, fmt.Sprintf("%s names %s, which does not exist", name, m[1]))
		}
	}
	return bad
}

// Hops finds names that the walks in docs/ARCHITECTURE.md give to functions which are not there: in the last column of their tables, each
// file (below internal, or without its wing below internal/core) with those of its functions that follow it. read returns the text of a
// file.
func Hops(text string, read func(name string) (string, bool)) []string {
	var bad []string
	rows := regexp.MustCompile(`(?m)^\| [0-9]+ \|.*\| ([^|]*) \|$`).FindAllStringSubmatch(text, -1)
	for _, row := range rows {
		file, content := "", ""
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if strings.HasSuffix(m[1], ".go") {
				var found bool
				file = "internal/" + m[1]
				if wing, _, _ := strings.Cut(m[1], "/"); !slices.Contains([]string{"core", "edge", "face", "host", "lab"}, wing) {
					file = "internal/core/" + m[1]
				}
				if content, found = read(file); !found {
					bad, content = append(bad, fmt.Sprintf("the walk names %s, which does not exist", file)), ""
				}
				continue
			}
			if content != "" && !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+regexp.QuoteMeta(m[1])+`\(`).MatchString(content) {
				bad = append(bad, fmt.Sprintf("the walk names %s of %s, which has no such function", m[1], file))
			}
		}
	}
	if len(rows) == 0 {
		bad = append(bad, "the walk is gone: one window and one bid, hop by hop, each with the functions that it goes through")
	}
	return bad
}

// Reading finds files of the core that CONTRIBUTING tells a new engineer to read, a line each, and that are not there.
func Reading(text string, exists func(string) bool) []string {
	var bad []string
	list := regexp.MustCompile("(?m)^   - `([\\w/]+\\.go)`: ").FindAllStringSubmatch(text, -1)
	for _, m := range list {
		if file := "internal/core/" + m[1]; !exists(file) {
			bad = append(bad, fmt.Sprintf("CONTRIBUTING.md names %s, which does not exist", file))
		}
	}
	if len(list) != 5 {
		bad = append(bad, fmt.Sprintf("CONTRIBUTING.md has %d files to read first, want five of one mechanism", len(list)))
	}
	return bad
}

// Changes finds entries of the change log that are longer than two lines: each says one thing that a user can see.
func Changes(text string) []string {
	var bad []string
	for _, entry := range strings.Split(text, "\n- ")[1:] {
		entry, _, _ = strings.Cut(entry, "\n\n")
		if n := strings.Count(strings.TrimSpace(entry), "\n") + 1; n > 2 {
			first, _, _ := strings.Cut(entry, "\n")
			bad = append(bad, fmt.Sprintf("CHANGELOG.md: %d lines, more than 2: %s", n, first))
		}
	}
	return bad
}
