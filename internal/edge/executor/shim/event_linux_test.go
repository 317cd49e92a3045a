package shim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
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

// TestAnEventBehindATornLine: a disk was full in the middle of a line. What is told next is a line of its own, and there are no empty ones.
func TestAnEventBehindATornLine(t *testing.T) {
	const torn = `{"What":"end","Token":"1-1"`
	for _, before := range []string{"", torn, torn + "}", torn + "}\n"} {
		path := filepath.Join(t.TempDir(), "events")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"start", "end"} {
			if err := shim.AppendEvent(path, shim.Event{What: what, Token: "2-1"}); err != nil {
				t.Fatal(err)
			}
			if got, err := shim.LastEvent(path, "2-1"); got != what || err != nil {
				t.Errorf("behind %q: told %s, it says %q, %v", before, what, got, err)
			}
		}
		all, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(all), "\n"), "\n")
		if before != "" {
			if lines[0] != strings.TrimSuffix(before, "\n") {
				t.Errorf("%q became %q", before, lines[0])
			}
			lines = lines[1:]
		}
		if len(lines) != 2 || !json.Valid([]byte(lines[0])) || !json.Valid([]byte(lines[1])) {
			t.Errorf("behind %q: %q, want two whole lines", before, lines)
		}
	}
}

// TestLastEventWhereALineIsCut: what is read at a time ends anywhere in the newest line of a subjob, or begins and ends in it, and an
// older one says otherwise.
func TestLastEventWhereALineIsCut(t *testing.T) {
	const atATime = 64 << 10
	path := filepath.Join(t.TempDir(), "events")
	told := func(e shim.Event) []byte {
		t.Helper()
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return append(line, '\n')
	}
	older := told(shim.Event{What: "start", Token: "1-1"})
	for _, long := range []int{0, 2 * atATime} {
		newest := told(shim.Event{What: "end", Token: "1-1", Outcome: strings.Repeat("x", long)})
		for cut := 0; cut <= len(newest); cut += 1 + long/64 {
			behind := (atATime - (len(newest)-cut)%atATime) % atATime // so that a piece begins cut bytes into it
			all := append(append(append([]byte(nil), older...), newest...), bytes.Repeat([]byte("\n"), behind)...)
			if err := os.WriteFile(path, all, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := shim.LastEvent(path, "1-1"); got != "end" || err != nil {
				t.Fatalf("cut at byte %d of a line of %d it says %q, %v", cut, len(newest), got, err)
			}
		}
	}
}

// TestLastEventIsOfTheSubjob, and not of a job that has the name of its token.
func TestLastEventIsOfTheSubjob(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	for _, e := range []shim.Event{{What: "start", Token: "1-1", Job: "j"}, {What: "end", Token: "2-1", Job: "1-1"}} {
		if err := shim.AppendEvent(path, e); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := shim.LastEvent(path, "1-1"); got != "start" || err != nil {
		t.Errorf("it says %q, %v, want the start", got, err)
	}
}

// TestAnEventOfAnEarlierMoment: an end that is told late says when it was.
func TestAnEventOfAnEarlierMoment(t *testing.T) {
	const ago = 3 * time.Second
	a := shim.AnchorAt(quantity.At(time.Now()))
	for at, want := range map[quantity.Instant]time.Duration{0: 0, a.Wall.Add(-ago): ago, a.Wall.Add(time.Hour): 0} {
		before := time.Now()
		e := shim.Event{Boot: int64(shim.Boottime()), Wall: before}
		boot := e.Boot
		e.Since(a, at)
		late := time.Duration(boot - e.Boot)
		if late < want || want == 0 && late != 0 || before.Sub(e.Wall) != late || late > want+time.Minute {
			t.Errorf("of an instant %v before, it is told as %v before", want, late)
		}
	}
}
