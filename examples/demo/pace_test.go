package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/config"
)

// TestPace: on a slow machine all times of all files are longer by the same, and nothing else is another; on one that is about as fast all
// is as written.
func TestPace(t *testing.T) {
	for measured, want := range map[float64]pace{0.5: 1, 1.25: 1, 1.3: 1.75, 3: 3.75, 1000: mostPace} {
		if got := paceOf(measured); got != want {
			t.Errorf("%v times: pace %v, want %v", measured, got, want)
		}
	}
	for _, name := range []string{"atoms.yaml", "blocks.yaml", "bids.yaml"} {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		asIs, err := config.ParseJobs(name, text)
		if err != nil {
			t.Fatal(err)
		}
		long, err := config.ParseJobs(name, []byte(pace(2.5).stretch(string(text))))
		if err != nil || len(long) != len(asIs) {
			t.Fatalf("%s: %d jobs of %d, %v", name, len(long), len(asIs), err)
		}
		for i := range long {
			a, b := asIs[i].Spec, long[i].Spec
			for what, of := range map[string][2]time.Duration{
				"walltime": {a.Walltime, b.Walltime}, "unit": {a.PerUnit, b.PerUnit}, "restore": {a.Restore, b.Restore},
				"checkpoint": {a.Checkpoint, b.Checkpoint}, "grace": {a.Launch.Grace, b.Launch.Grace},
			} {
				if of[1] != (of[0]*5/2 + time.Millisecond - 1).Truncate(time.Millisecond) {
					t.Errorf("%s of %s: %s is %v, want %v", name, a.Name, what, of[1], of[0]*5/2)
				}
			}
			if a.Total != b.Total || a.Grid != b.Grid || strings.Join(a.Launch.Command, " ") != strings.Join(b.Launch.Command, " ") {
				t.Errorf("%s: the work of %s is another", name, a.Name)
			}
		}
	}
}

// TestAPictureInAnyCase: one side alone is drawn too, and so is one in which work was lost.
func TestAPictureInAnyCase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.svg")
	var out bytes.Buffer
	r := side2("pieces", piece(0, 10, true), piece(10, 19, false))
	r.ran, r.waited = 20*time.Second, 14*time.Second
	if err := conclude(&out, []*result{r}, file); err != nil || !strings.Contains(out.String(), "the machine was busy 70% of the time") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if svg, err := os.ReadFile(file); err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("the picture: %v", err)
	}
	if err := conclude(&out, nil, file); err == nil {
		t.Error("nothing at all is no error")
	}
}

// TestABusyMachineComparesNothing: with both sides done there is no verdict where the machine disturbed one of them, and that is no error.
func TestABusyMachineComparesNothing(t *testing.T) {
	var out bytes.Buffer
	pieces, blocks := side2("pieces", piece(0, 10, true), piece(10, 30, true)), side2("blocks", piece(0, 19, true))
	blocks.ran, blocks.waited = 20*time.Second, 14*time.Second
	err := conclude(&out, []*result{pieces, blocks}, filepath.Join(t.TempDir(), "demo.svg"))
	first, _, _ := strings.Cut(out.String(), "\n")
	if err != nil || !strings.Contains(first, "in 30s and in rigid blocks in 19s. This machine is too busy to compare them") {
		t.Errorf("%v, it begins with %q", err, first)
	}
}
