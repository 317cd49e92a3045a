package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	histories "sluice.dev/sluice/internal/lab/history/all"
)

// TestReadingIsWatched: whoever waits for a long log sees how much of all files is read, and an interrupt ends it.
func TestReadingIsWatched(t *testing.T) {
	dir := t.TempDir()
	var files []histories.File
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, 2_500_000), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, histories.At(path))
	}
	pipe := strings.Repeat("x", 1_500_000)
	files = append(files, histories.File{Name: "a pipe", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(pipe)), nil
	}}, histories.At(filepath.Join(dir, "none")))
	ctx, cancel := context.WithCancel(t.Context())
	var shown [][2]int
	watched := watchReading(ctx, files, func(done, total int) { shown = append(shown, [2]int{done, total}) })
	for i, f := range watched[:3] {
		r, err := f.Open()
		if err != nil || f.Name != files[i].Name {
			t.Fatal(f.Name, err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if want := [][2]int{{0, 5}, {1, 5}, {2, 5}, {3, 5}, {4, 5}, {5, 5}, {6, 6}}; !slices.Equal(shown, want) {
		t.Errorf("shown %v, want %v", shown, want)
	}
	if _, err := watched[3].Open(); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	cancel()
	r, err := watched[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("read behind an interrupt: %v", err)
	}
}
