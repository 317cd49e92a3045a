package pilots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
)

// What the ledger says that can't be, or that a later build has written, is refused, and the file is named.
func TestUnreadableLedgers(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kind       errkind.Kind
		says       string
	}{
		{"cut off", `{"version": 1, "pools": [`, errkind.Corrupt, "is damaged"},
		{"of a later build", `{"version": 2, "pools": {}}`, errkind.Unsupported, "versions up to 1"},
		{"a pool twice", `{"version": 1, "pools": [{"pool": "a"}, {"pool": "a"}]}`, errkind.Corrupt, "twice"},
		{"a strange name", `{"version": 1, "pools": [{"pool": "a", "pilots": [{"name": "../x", "length": 1}]}]}`,
			errkind.Corrupt, "can't be"},
		{"a strange end", `{"version": 1, "pools": [{"pool": "a", "endings": [{"how": "eaten"}]}]}`, errkind.Corrupt, "eaten"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, FileName)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenLedger(dir)
		if errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The ledger's file is replaced whole, and never written to: a daemon that dies in between leaves the one before.
func TestTheLedgerIsReplaced(t *testing.T) {
	w := testWorld(t)
	w.ask()
	path, before := filepath.Join(w.dir, FileName), filepath.Join(w.dir, "before")
	if err := os.Link(path, before); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w.ask()
	is, err := os.ReadFile(path)
	kept, failed := os.ReadFile(before)
	if err = errors.Join(err, failed); err != nil || string(kept) != string(was) || string(is) == string(was) {
		t.Errorf("%v: the file before was %d bytes, and is %d; the one after is %d", err, len(was), len(kept), len(is))
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		name := "p-" + part()
		if !Named("p", name) || seen[name] {
			t.Errorf("name %q", name)
		}
		seen[name] = true
	}
	if Named("p", "p-b-abcdefgh") || Named("p", "q-abcdefgh") || Named("p", "p-abc") {
		t.Error("another pool's name counts as its own")
	}
}

// The latest endings are kept, and all are counted.
func TestTheLatestEndingsAreKept(t *testing.T) {
	b := &book{Pool: "p", Ended: map[string]int{}}
	name := func(i int) string { return fmt.Sprintf("p-%08d", i) }
	const all = supply.MostEndings + 3
	for i := range all {
		if err := b.ask(entry{Name: name(i), Length: time.Hour, Asked: t0}, 1); err != nil {
			t.Fatal(err)
		}
		b.end(&supply.Ending{Name: name(i), How: supply.Refused, Ended: quantity.At(t0), Why: "no"})
	}
	if n := len(b.Endings); n != supply.MostEndings || b.Endings[0].Name != name(3) || b.Endings[n-1].Name != name(all-1) ||
		b.Ended["refused"] != all {
		t.Errorf("%d endings, %+v to %+v, counted %v", n, b.Endings[0], b.Endings[n-1], b.Ended)
	}
}
