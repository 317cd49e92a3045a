package config

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/strict"
)

// Paths are all places of the job file in the order of the reference: apiVersion, spec, spec.items, spec.items.total. An
// element of a list has the path of its list.
func Paths() []string {
	root := jobFile()
	var out []string
	var walk func(prefix string, f *strict.Form)
	walk = func(prefix string, f *strict.Form) {
		for _, k := range f.Inner() {
			out = append(out, prefix+k.Key)
			walk(prefix+k.Key+".", &k.Form)
		}
	}
	walk("", &root)
	return out
}

// lookup finds the field at a path.
func lookup(path string) (*strict.Field, error) {
	at := &strict.Field{Form: jobFile()}
	keys := strings.Split(path, ".")
	for i, key := range keys {
		next := strict.Find(at.Form.Inner(), key)
		if next == nil {
			below := "the job file"
			if i > 0 {
				below = strings.Join(keys[:i], ".")
			}
			if len(at.Form.Inner()) == 0 {
				return nil, errkind.Errorf(errkind.NotFound, "%s has no keys: it is %s", below, &at.Form)
			}
			_, hint := strict.Suggest(key, strict.Names(at.Form.Inner()))
			return nil, errkind.Errorf(errkind.NotFound, "%s has no key %q; %s", below, key, hint)
		}
		at = next
	}
	return at, nil
}

// firstSentence is a text up to its first full stop.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(first, ".")
}

// Explain describes the job file's key at a path, such as spec.items. An error of kind NotFound names similar keys.
func Explain(path string) (string, error) {
	at, err := lookup(path)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n\n", path, shape(at))
	for _, line := range wrap(meaning(at), 86) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	fmt.Fprintf(&b, "\n  for example  %s: %s\n", at.Key, at.Example)
	list := at.Form.Inner()
	width := 0
	for _, k := range list {
		width = max(width, len(k.Key))
	}
	for _, k := range list {
		fmt.Fprintf(&b, "\n  %-*s  %s\n", width, k.Key, shape(&k))
		for _, line := range wrap(meaning(&k), 84-width) {
			fmt.Fprintf(&b, "  %*s  %s\n", width, "", line)
		}
	}
	return b.String(), nil
}

// shape is what may stand at a key, and whether it has to.
func shape(f *strict.Field) string {
	text := f.Form.String()
	switch without := f.Without(); {
	case f.Need:
		return text + "; needed"
	case without != "":
		return text + "; without it: " + without
	}
	return text
}

// meaning is the doc, with the kinds of work that have the key.
func meaning(f *strict.Field) string {
	if len(f.Of) == 0 {
		return f.Doc
	}
	return f.Doc + " Only with " + strings.Join(f.Of, ", ") + "."
}

// wrap breaks a text into lines of at most width characters, where words allow it.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Words are the first words that Explain knows.
func Words() []string {
	root := jobFile()
	return strict.Names(root.Keys)
}

// IsPath says whether a path begins as one of the job file does.
func IsPath(path string) bool {
	first, _, _ := strings.Cut(path, ".")
	return slices.Contains(Words(), first)
}
