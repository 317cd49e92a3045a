//go:build kubernetes

package plane

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAPageIsWrittenBetweenItsMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	const page = "before\n<!-- x: written by make it -->\nold\n<!-- x: end -->\nafter\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := WritePage(path, "x", "| new |\n"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if want := "before\n<!-- x: written by make it -->\n\n| new |\n\n<!-- x: end -->\nafter\n"; err != nil || string(got) != want {
			t.Fatalf("%v\n%s", err, got)
		}
	}
	if WritePage(path, "y", "") == nil {
		t.Error("a page without marks was written")
	}
}
