package shim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// TestLastEvent: wherever in the file a line is, also where it is cut by what is read at a time.
func TestLastEvent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	says := func(token, want string) {
		t.Helper()
		if got, err := shim.LastEvent(path, token); got != want || err != nil {
			t.Errorf("of %s it says %q, %v; want %q", token, got, err, want)
		}
	}
	says("1-1", "")
	tell := func(what, token, of string) {
		t.Helper()
		if err := shim.AppendEvent(path, shim.Event{What: what, Token: token, Job: job.ID(of)}); err != nil {
			t.Fatal(err)
		}
	}
	const n = 2000 // some 300 KiB
	for i := range n {
		tell("start", fmt.Sprintf("2-%d", i), "j")
		if i%2 == 0 {
			tell("end", fmt.Sprintf("2-%d", i), `","Token":"1-1","`)
		}
	}
	for i := 0; i < n; i += 13 { // even and odd
		want := "start"
		if i%2 == 0 {
			want = "end"
		}
		says(fmt.Sprintf("2-%d", i), want)
	}
	says("1-1", "")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"What":"end","Token":"2-1"`)
	if cerr := f.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	says("2-1", "start") // a line that was cut off says nothing
}
