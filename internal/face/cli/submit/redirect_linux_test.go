package submit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWhatIsRedirected: files are told, terminals, pipes and devices are not.
func TestWhatIsRedirected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.txt")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	if got := redirected(null, file, out); !slices.Equal(got, []string{path}) {
		t.Errorf("%v, want %s alone", got, path)
	}
}
