package array

import (
	"path"
	"strings"
	"testing"
)

func TestFile(t *testing.T) {
	task := Task{Job: "job-1", Name: "My Job", ID: 7}
	for pattern, want := range map[string]string{
		"slurm-%A_%a.out": "slurm-job-1_7.out", "%x-%4a": "My Job-0007", "a/%j/./%a": "a/job-1/7", "100%%": "100%", "%10a": "0000000007",
		"a/../b": "b", "ö%a": "ö7",
	} {
		if got, err := File(pattern, task); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", pattern, got, err, want)
		}
	}
	for pattern, want := range map[string]string{
		"": "names no file", "logs/": "names no file", "../x": "leads out", "a/../../x": "leads out", "/tmp/x": "leads out",
		"..": "leads out",
		".":  "leads out", "%N.out": "%N in it", "x%": "ends in", "x%4": "ends in", "%11a": "pads", "%123a": "pads",
		"a\x00b":                  "can be called",
		strings.Repeat("x", 1025): "longer than",
	} {
		if got, err := File(pattern, task); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %q, %v, want %q", pattern, got, err, want)
		}
	}
	if got, _ := File("%x", Task{Job: "j"}); got != "j" {
		t.Errorf("without a name of its owner's: %q", got)
	}
	// A name that leads out once it is known is refused too.
	if got, err := File("%x", Task{Job: "j", Name: "../../x"}); err == nil {
		t.Errorf("%q", got)
	}
}

func FuzzFile(f *testing.F) {
	for _, s := range []string{"slurm-%A_%a.out", "%", "%%%", "a/../b", "%4a", "../%x", "%x/%x"} {
		f.Add(s, "n")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		got, err := File(pattern, Task{Job: "j", Name: name, ID: 3})
		if err != nil {
			return
		}
		if got == "" || path.IsAbs(got) || !strings.HasPrefix(path.Join("root", got), "root/") {
			t.Fatalf("%q with %q is %q", pattern, name, got)
		}
	})
}
