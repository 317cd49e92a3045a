//go:build kubernetes

package operator

import (
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

// TestAJournalKeepsItsNameAsLongAsItIsThere: and no other has it.
func TestAJournalKeepsItsNameAsLongAsItIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	keys := map[string]bool{}
	begin := func() string {
		t.Helper()
		j, keep, err := nameOfJournal(dir)
		if err != nil || keep() != nil {
			t.Fatal(j, err)
		}
		keys[string(j.Key)] = true
		return j.Name
	}
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cut := begin()
	first := begin() // nothing was written to it yet
	write("1.log", "record")
	if again := begin(); len(first) != 6 || again != first || cut == first {
		t.Errorf("%q, then %q; before either had a record %q", first, again, cut)
	}
	if err := os.Remove(filepath.Join(dir, "1.log")); err != nil { // its records are lost, its name is not
		t.Fatal(err)
	}
	second := begin()
	write("1.log", "record")
	if again := begin(); second == first || again != second {
		t.Errorf("%q after %q was lost, then %q", second, first, again)
	}
	if len(keys) != 3 {
		t.Errorf("%d keys of three journals", len(keys))
	}
	write("NAME", "Not/a name\n")
	if _, _, err := nameOfJournal(dir); errkind.Of(err) != errkind.Corrupt {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "NAME")); err != nil {
		t.Fatal(err)
	}
	if name := begin(); name != "" {
		t.Errorf("%q, want none: it is from before journals had names", name)
	}
	if begin(); len(keys) != 4 {
		t.Errorf("%d keys, want one more for the one from before", len(keys))
	}
}
