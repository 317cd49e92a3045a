package all

import (
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

func TestStoresAreOpenedByTheirSpecs(t *testing.T) {
	dir := t.TempDir()
	for _, spec := range []string{"local:" + filepath.Join(dir, "a"), "path:" + filepath.Join(dir, "b")} {
		s, err := Init(t.Context(), spec)
		if err != nil || s.String() != spec {
			t.Fatalf("%s: %v, %v", spec, s, err)
		}
		if s, err = Open(t.Context(), spec); err != nil || s.String() != spec {
			t.Errorf("%s once more: %v, %v", spec, s, err)
		}
	}
	if s, err := Open(t.Context(), "path:"+filepath.Join(dir, "c")); s != nil || errkind.Of(err) != errkind.NotFound {
		t.Errorf("a path that is no store: %v, %v", s, err)
	}
	for _, spec := range []string{"", "nfs:/x", "/x"} {
		if _, err := Open(t.Context(), spec); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "path:/mnt/shared") {
			t.Errorf("%q: %v", spec, err)
		}
	}
	for _, k := range Kinds() {
		if k.Help == "" || k.Open == nil || k.Init == nil {
			t.Errorf("%s is half a kind", k.Name)
		}
	}
}
