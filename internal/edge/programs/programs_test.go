package programs

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/config"
)

// TestFilesAreJobs: each program's job file is one that is accepted, starts in its own directory, and names a wrapper that is there.
func TestFilesAreJobs(t *testing.T) {
	for _, name := range Names() {
		files, err := Files(name)
		if err != nil || len(files) < 2 {
			t.Errorf("%s has %d files: %v", name, len(files), err)
		}
		has := map[string]File{}
		for _, f := range files {
			has[f.Path] = f
			if strings.HasSuffix(f.Path, ".sh") && (!f.Program || !strings.HasPrefix(string(f.Text), "#!/bin/sh\n")) {
				t.Errorf("%s: %s is no program", name, f.Path)
			}
		}
		if _, ok := has["sluice/config.yaml"]; ok { // a profile, which makes its jobs itself
			continue
		}
		j, ok := has["job.yaml"]
		if !ok {
			t.Errorf("%s has no job.yaml", name)
			continue
		}
		spec, dir, err := config.ParseJob(j.Path, j.Text)
		if err != nil || dir != "." {
			t.Errorf("%s starts in %q: %v", name, dir, err)
			continue
		}
		wrapped := false
		for _, arg := range spec.Launch.Command {
			_, ok := has[strings.TrimPrefix(arg, "./")]
			wrapped = wrapped || ok
		}
		if !wrapped {
			t.Errorf("%s: nothing of %q is among its files", name, spec.Launch.Command)
		}
	}
}

func TestAnUnknownProgramIsRefusedWithTheKnownOnes(t *testing.T) {
	for _, name := range []string{"", "gromac", "no/such"} {
		_, err := Files(name)
		if err == nil {
			t.Errorf("%q has files", name)
			continue
		}
		for _, known := range Names() {
			if !strings.Contains(err.Error(), known) {
				t.Errorf("%q: %v does not name %s", name, err, known)
			}
		}
	}
}
