// Package page writes a page of docs that a bench has measured. Its prose and its tables are a template that lies beside the bench, its
// pictures are in a folder of the page's name. It knows nothing of what is measured.
package page

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

// Page is NAME.md in a folder, and its pictures in the folder NAME beside it.
type Page struct{ out, name string }

// New makes the folder of the pictures.
func New(out, name string) (*Page, error) {
	return &Page{out, name}, os.MkdirAll(filepath.Join(out, name), 0o755)
}

// Draw stores a picture, and returns what shows it on the page.
func (p *Page) Draw(name string, c *report.Chart) (string, error) {
	file := p.name + "/" + name + ".svg"
	return fmt.Sprintf("![%s](%s)", c.Title, file), report.Create(filepath.Join(p.out, file), c.SVG)
}

// Picture is one of several, with the name of its file.
type Picture struct {
	Name  string
	Chart *report.Chart
}

// DrawAll stores pictures, and returns what shows each.
func (p *Page) DrawAll(pictures []Picture) (shown []string, err error) {
	for _, x := range pictures {
		one, err := p.Draw(x.Name, x.Chart)
		if err != nil {
			return nil, err
		}
		shown = append(shown, one)
	}
	return shown, nil
}

// Write writes the page: a template executed on data. Beside the bench's own functions it may use those of Funcs.
func (p *Page) Write(text string, own template.FuncMap, data any) error {
	out, err := Execute(text, own, data)
	if err != nil {
		return err
	}
	return report.Create(filepath.Join(p.out, p.name+".md"), func(w io.Writer) error { _, err := io.WriteString(w, out); return err })
}

// Execute is a page's text.
func Execute(text string, own template.FuncMap, data any) (string, error) {
	t, err := template.New("page").Funcs(Funcs()).Funcs(own).Parse(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = t.Execute(&out, data)
	return out.String(), err
}

// Funcs of every template: head and row make lines of a table, title is a metric's, names makes texts and lists of them one list, list
// makes a list of anything.
func Funcs() template.FuncMap {
	return template.FuncMap{
		"head":  func(cells ...any) string { return Row(cells...) + "\n|" + strings.Repeat("---|", len(Names(cells...))) },
		"row":   Row,
		"title": func(metric string) string { return measure.About(metric).Title },
		"names": Names,
		"list":  func(of ...any) []any { return of },
	}
}

// Row is a line of a table, of texts and lists of texts.
func Row(cells ...any) string { return "| " + strings.Join(Names(cells...), " | ") + " |" }

// Names are texts and lists of texts as one list.
func Names(of ...any) (out []string) {
	for _, x := range of {
		switch x := x.(type) {
		case []string:
			out = append(out, x...)
		case []any:
			out = append(out, Names(x...)...)
		default:
			out = append(out, fmt.Sprint(x))
		}
	}
	return out
}

// Between puts text between the marks that a page has for a bench, and leaves the rest of it as it is.
func Between(path, bench, text string) error {
	from, to := fmt.Sprintf("<!-- %[1]s: written by make %[1]s -->\n", bench), fmt.Sprintf("<!-- %s: end -->\n", bench)
	was, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(was), from)
	_, tail, also := strings.Cut(rest, to)
	if !ok || !also {
		return fmt.Errorf("%s has no marks %q and %q", path, from, to)
	}
	return os.WriteFile(path, []byte(head+from+text+to+tail), 0o644)
}
