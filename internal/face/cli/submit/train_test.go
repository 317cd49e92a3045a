package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/face/cli/clitest"
)

// TestTrainIsAJobFile: what the flags make, and what is said where they do not suffice.
func TestTrainIsAJobFile(t *testing.T) {
	text := func(s string) *string { return &s }
	changed := func(flag string) bool { return flag == "steps" || flag == "mem" }
	m := training{values: map[string]*string{"steps": text("90000"), "mem": text("8Gi")}, checkpoints: "out/ckpt", progress: `step (\d+)`}
	s, err := m.compose(changed, []string{"python3", "train.py"})
	if err != nil {
		t.Fatal(err)
	}
	spec := s.job.Spec
	if d := spec.Launch.Adapter.Directory; d != (job.Directory{Path: "out/ckpt", Progress: `step (\d+)`}) || !spec.Untimed() ||
		spec.Kind != job.Steps || spec.Total != 90000 || spec.Grid != 1 || spec.Launch.Grace.String() != trainGrace || s.dir != "." ||
		s.goes != here {
		t.Errorf("%+v in %q", spec, s.dir)
	}
	m.noWorkdir = true
	if s, err = m.compose(changed, []string{"python3", "train.py"}); err != nil || s.dir+s.goes != "" {
		t.Errorf("without a directory %q goes along: %v", s.dir, err)
	}
	delete(m.values, "steps")
	for progress, want := range map[string]job.Spec{"": {Unit: "second", PerUnit: time.Second}, `step (\d+)`: {Unit: "step"}} {
		m.progress = progress
		s, err := m.compose(changed, []string{"python3", "train.py"})
		if err != nil {
			t.Fatal(err)
		}
		spec, _, err := config.ParseJob("job", s.text)
		if err != nil || !spec.Open() || spec.Unit != want.Unit || spec.PerUnit != want.PerUnit {
			t.Errorf("with progress %q and no steps: %+v, %v", progress, spec, err)
		}
	}
	for says, wrong := range map[string]func(*training) []string{
		"no command is given":         func(*training) []string { return nil },
		"--checkpoint-dir is missing": func(m *training) []string { m.checkpoints = ""; return []string{"x"} },
		"--mem is missing":            func(m *training) []string { m.values = nil; return []string{"x"} },
		"no regular expression":       func(m *training) []string { m.progress = "("; return []string{"x"} },
		"/data is not below":          func(m *training) []string { m.checkpoints = "/data"; return []string{"x"} },
	} {
		m := training{values: map[string]*string{"steps": text("90000"), "mem": text("8Gi")}, checkpoints: "ckpt"}
		args := wrong(&m)
		if _, err := m.compose(func(flag string) bool { return m.values[flag] != nil && changed(flag) }, args); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v; want %q", err, says)
		}
	}
}

// TestTrainRefusesWhereNothingCanBeKept: a place to save that would never hold a checkpoint is refused before anything is sent.
func TestTrainRefusesWhereNothingCanBeKept(t *testing.T) {
	dir := clitest.Tree(t, map[string]string{"model.pt": "x", "out/best.pt": "x", "ckpt/state-1": "x"})
	t.Chdir(dir)
	if err := os.Symlink("ckpt", "link"); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for place, says := range map[string]string{
		"model.pt": "model.pt is a file: give the directory that the program saves to and goes on from, such as " +
			"--checkpoint-dir ckpt",
		"out/best.pt":               "such as --checkpoint-dir out",
		"model.pt/x":                "not a directory: give a directory",
		"link":                      "is a link, and where that leads would not be kept",
		"..":                        ".. is not below the current directory",
		"../ckpt":                   "../ckpt is not below the current directory",
		".":                         ". is not below the current directory",
		"/data/ckpt":                "/data/ckpt is not below the current directory",
		filepath.Join(here, "ckpt"): "give --checkpoint-dir ckpt, and have the program save there by that name",
		"ckpt":                      "",
		"ckpt/":                     "",
		"new/one":                   "",
	} {
		m := training{values: map[string]*string{"steps": new("9"), "mem": new("8Gi")}, checkpoints: place}
		_, err := m.compose(func(flag string) bool { return m.values[flag] != nil }, []string{"x"})
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says) ||
			command.ExitCode(err) != command.ExitUsage) {
			t.Errorf("%s: %v, want %q", place, err, says)
		}
	}
	m := training{values: map[string]*string{"steps": new("9"), "mem": new("8Gi")}, checkpoints: "model.pt", noWorkdir: true}
	if _, err := m.compose(func(flag string) bool { return m.values[flag] != nil }, []string{"x"}); err != nil {
		t.Errorf("%v, though nothing goes along", err)
	}
}
