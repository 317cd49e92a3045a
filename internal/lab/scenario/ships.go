package scenario

import (
	"embed"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/strict"
)

//go:embed scenarios
var shipped embed.FS

const extension = ".yml"

// Shipped lists the names of the scenarios in the program, sorted: those on top first, then the stories.
func Shipped() []string {
	var out []string
	err := fs.WalkDir(shipped, "scenarios", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, strings.TrimSuffix(strings.TrimPrefix(path, "scenarios/"), extension))
		}
		return err
	})
	if err != nil {
		return nil // the files are part of the program: reading them can't fail
	}
	slices.SortStableFunc(out, func(a, b string) int {
		if n := strings.Count(a, "/") - strings.Count(b, "/"); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	return out
}

// Open finds a scenario: the text and the name that messages call it by. What looks like a file (it has a dot or begins
// with / or .) is read from disk, anything else is the name of one that ships with the program. An error is of kind
// Invalid and names the near miss.
func Open(name string) (text []byte, called string, err error) {
	if text, err = shipped.ReadFile("scenarios/" + name + extension); err == nil {
		return text, name + extension, nil
	}
	if !strings.Contains(name, ".") && !strings.HasPrefix(name, "/") {
		return nil, "", errkind.Errorf(errkind.Invalid, "no scenario %q ships with this program, and it is no file: %s", name,
			strict.Hint(name, Shipped()))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, "", errkind.Errorf(errkind.Invalid, "read the scenario: %w", err)
	}
	defer f.Close()
	text, err = io.ReadAll(io.LimitReader(f, strict.MaxFileBytes+1))
	if err != nil {
		return nil, "", errkind.Errorf(errkind.Invalid, "read the scenario %s: %w", name, err)
	}
	return text, name, nil
}

// Load opens and parses a scenario that takes no arrivals from a file.
func Load(name string, sets ...strict.Set) (*Scenario, error) { return Reader{}.Load(name, sets...) }

// Load opens and parses a scenario.
func (r Reader) Load(name string, sets ...strict.Set) (*Scenario, error) {
	data, called, err := Open(name)
	if err != nil {
		return nil, err
	}
	return r.Parse(called, data, sets...)
}
