//go:build kubernetes

package operator

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

func TestMemoryIsBoundedByTheContainersLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, c := range []struct {
		file, text, env string
		want            int64
	}{
		{"memory.max", "1073741824\n", "", 1073741824 / 10 * 9},
		{"memory/memory.limit_in_bytes", "1000000000\n", "", 900_000_000},
		{"memory.max", "max\n", "", math.MaxInt64},
		{"memory/memory.limit_in_bytes", "9223372036854771712\n", "", math.MaxInt64},
		{"memory.max", "0\n", "", math.MaxInt64},
		{"memory.max", "1073741824\n", "off", math.MaxInt64},
		{"other", "1\n", "", math.MaxInt64},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		t.Setenv("GOMEMLIMIT", c.env)
		path := filepath.Join(t.TempDir(), c.file)
		root := path[:len(path)-len(c.file)]
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		boundMemory(root, slog.New(slog.DiscardHandler))
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%s %q, GOMEMLIMIT=%q: %d, want %d", c.file, c.text, c.env, got, c.want)
		}
	}
}
