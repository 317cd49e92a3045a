package submit

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
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
	for says, wrong := range map[string]func(*training) []string{
		"no command is given":         func(*training) []string { return nil },
		"--checkpoint-dir is missing": func(m *training) []string { m.checkpoints = ""; return []string{"x"} },
		"--steps is missing":          func(m *training) []string { m.values = nil; return []string{"x"} },
		"no regular expression":       func(m *training) []string { m.progress = "("; return []string{"x"} },
		"want a directory below":      func(m *training) []string { m.checkpoints = "/data"; return []string{"x"} },
	} {
		m := training{values: map[string]*string{"steps": text("90000"), "mem": text("8Gi")}, checkpoints: "ckpt"}
		args := wrong(&m)
		if _, err := m.compose(func(flag string) bool { return m.values[flag] != nil && changed(flag) }, args); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v; want %q", err, says)
		}
	}
}
