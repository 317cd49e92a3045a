package shim

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/edge/volume"
)

// TestMountedIn: escaped names are read, and a sibling whose name begins alike is not below.
func TestMountedIn(t *testing.T) {
	const table = `22 1 0:21 / / rw - ext4 /dev/root rw
40 22 0:50 / /d/runs/1-1/output/a\040b rw,relatime - tmpfs none rw
41 22 0:51 / /d/runs/1-10 rw,relatime - tmpfs none rw
short
42 40 0:52 / /d/runs/1-1/output/a\040b/c\134040 rw,relatime - tmpfs none rw
43 22 0:53 / /d/runs/1-1 rw,relatime - tmpfs none rw
`
	want := []string{"/d/runs/1-1/output/a b", `/d/runs/1-1/output/a b/c\040`, "/d/runs/1-1"}
	if got := mountedIn(volume.ParseMounts(table), "/d/runs/1-1"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
