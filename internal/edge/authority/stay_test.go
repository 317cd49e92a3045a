package authority

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAnEndIsKept with the machine until it is said otherwise, also over a start of the head; one that joins anew by the name has none.
// Meanwhile an earlier build, which would forget it, refuses the file.
func TestAnEndIsKept(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	version := func() string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, membersFile))
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(strings.TrimSpace(string(text[1:])), ",")
		return line
	}
	m := newMachine(t, "a")
	m.join(t, a, invite(t, a, "", t0))
	for _, s := range []departure.Stay{
		{Ephemeral: true, Until: quantity.At(t0.Add(time.Hour))}, {Ephemeral: true}, {},
		{Ephemeral: true, Until: quantity.At(t0.Add(2 * time.Hour))},
	} {
		if err := a.SetStay("a", s); err != nil {
			t.Fatal(err)
		}
		a = open(t, dir)
		list := a.Machines()
		if got := a.Stay("a"); got != s || len(list) != 1 || list[0].Stay() != s {
			t.Errorf("kept is %+v, %+v, said was %+v", got, list, s)
		}
		if want := map[bool]string{false: `"version": 1`, true: `"version": 2`}[s.Ephemeral]; version() != want {
			t.Errorf("with %+v the file has %s", s, version())
		}
	}
	if err := a.Remove("a", t0); err != nil {
		t.Fatal(err)
	}
	if got := a.Stay("a"); got != (departure.Stay{}) || version() != `"version": 1` {
		t.Errorf("of a machine that was removed: %+v, %s", got, version())
	}
	refuses(t, a.SetStay("a", departure.Stay{Ephemeral: true}), errkind.Denied, "was removed")
	newMachine(t, "a").join(t, a, invite(t, a, "", t0))
	if got := a.Stay("a"); got != (departure.Stay{}) {
		t.Errorf("another machine of the name has %+v", got)
	}
}
