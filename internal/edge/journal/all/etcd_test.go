//go:build etcd && linux

package all

import (
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/etcd/etcdtest"
)

// TestAJournalElsewhere: it is found from another data directory, by one process at a time, and a data directory goes on with the
// journal that it began with alone.
func TestAJournalElsewhere(t *testing.T) {
	at := strings.TrimPrefix(etcdtest.Start(t, 1, true)[0].Endpoint, "http://")
	lab, other := "etcd://"+at+"/lab", "etcd://"+at+"/other"
	folder := func() string { return filepath.Join(t.TempDir(), "journal") }
	first, second, own := folder(), folder(), folder()
	open := func(dir string, o Options) journal.Journal {
		t.Helper()
		j, err := Open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	shut := func(j journal.Journal) {
		t.Helper()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(dir, spec string, kind errkind.Kind, why string) {
		t.Helper()
		if _, err := Open(t.Context(), dir, Options{Spec: spec}); errkind.Of(err) != kind || !strings.Contains(err.Error(), why) {
			t.Fatalf("%v, want %v: %s", err, kind, why)
		}
	}
	shut(open(first, Options{Spec: lab}))
	shut(open(first, Options{Spec: "etcd://" + strings.Replace(at, "127.0.0.1", "localhost", 1) + "/lab"}))
	refused(first, "", errkind.Conflict, "elsewhere (etcd:/lab/")
	refused(first, other, errkind.Conflict, "is another one")
	refused(first, "etcd://10.0.0.1:1", errkind.Invalid, "no prefix")
	shut(open(own, Options{}))
	refused(own, lab, errkind.Conflict, "has a journal of its own")
	shut(open(own, Options{}))

	j := open(first, Options{Spec: lab})
	refused(second, lab, errkind.Conflict, "--depose")
	shut(open(second, Options{Spec: lab, Depose: true}))
	_ = j.Close()
	if found, err := filepath.Glob(filepath.Join(first, "*")); err != nil || len(found) != 1 {
		t.Errorf("in the journal's folder are %v, %v", found, err)
	}
}
