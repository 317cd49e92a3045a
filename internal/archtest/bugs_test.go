package archtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/test/planted"
)

// TestPlantedBugsApply: the edits of test/planted/bugs.txt fit the code as it is, and the tests that see the bugs are where it says. Who
// changes a line that is edited there changes it there, too.
func TestPlantedBugsApply(t *testing.T) {
	if _, err := planted.Overlay("../..", t.TempDir()); err != nil {
		t.Error(err)
	}
	soak, names := 0, map[string]bool{}
	for _, bug := range planted.Bugs() {
		if names[bug.Name] {
			t.Errorf("%s is there twice", bug.Name)
		}
		names[bug.Name] = true
		if bug.Test == "" {
			soak++
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", "..", bug.Folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "func "+bug.Test+"(")
		}) {
			t.Errorf("planted bug %s: %s has no %s: name the test that sees it in test/planted/bugs.txt", bug.Name, bug.Folder, bug.Test)
		}
	}
	if soak != 14 || len(names) != 75 {
		t.Errorf("%d planted bugs, %d for the kill soak: one went, or is not counted here yet", len(names), soak)
	}
}
