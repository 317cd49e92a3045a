package job_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

func TestNames(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "count-words": true, "0": true, "a--b": true, strings.Repeat("x", 63): true,
		"": false, "-": false, "-a": false, "a-": false, "A": false, "a_b": false, "a.b": false, "a/b": false, "../b": false, "a b": false,
		"a\x00": false, "\x1b[2J": false, "é": false, "a\n": false, strings.Repeat("x", 64): false,
	} {
		if job.ValidName(name) != good {
			t.Errorf("%q: valid is %v", name, !good)
		}
	}
}

// TestIDs: a job's id is its name, or that of a custom resource, with the namespace in front.
func TestIDs(t *testing.T) {
	long := strings.Repeat("x", 63)
	for id, good := range map[string]bool{
		"a": true, "team-a.train": true, long + "." + long: true,
		"": false, ".": false, "a.": false, ".a": false, "a.b.c": false, "a..b": false, "../b": false, "a.-b": false, "A.b": false,
		long + "." + long + "x": false,
	} {
		if job.ValidID(id) != good {
			t.Errorf("%q: valid is %v", id, !good)
		}
		spec := job.Spec{Queue: "default"}
		if err := spec.CheckNames(job.ID(id)); (err == nil) != good {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestEveryNameOfASpec: all that are none are listed at once; a template may be left out.
func TestEveryNameOfASpec(t *testing.T) {
	good := job.Spec{Name: "a", Queue: "default", Options: []job.Option{{Name: "x"}, {Name: "y"}}}
	if err := good.CheckNames(good.Name); err != nil {
		t.Errorf("good names: %v", err)
	}
	bad := job.Spec{Queue: "a/b", Template: "T", Options: []job.Option{{Name: "x"}, {Name: ""}, {Name: "x"}}}
	err := bad.CheckNames(bad.Name)
	if err == nil {
		t.Fatal("bad names pass")
	}
	for _, want := range []string{`metadata.name: is ""`, `spec.queue: is "a/b"`, `spec.template: is "T"`, `spec.options[1].name: is ""`,
		`spec.options[2].name: is "x" like`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}
