package all

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

func TestFormatsAreFoundByTheirNames(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Formats() {
		if seen[f.Name] {
			t.Errorf("two formats are called %s", f.Name)
		}
		seen[f.Name] = true
		if found, err := ByName(f.Name); err != nil || found.Name != f.Name || found.Doc != f.Doc {
			t.Errorf("%s: found %q, %v", f.Name, found.Doc, err)
		}
	}
	if _, err := ByName("csv"); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), `"csv" is not known`) ||
		!strings.Contains(err.Error(), "\n  swf: ") {
		t.Errorf("an unknown name: %v", err)
	}
}
