package config

import (
	"strings"
	"testing"
)

func TestSubjobs(t *testing.T) {
	for text, want := range map[string]Subjobs{
		"queues: []":  {},
		"subjobs: {}": {},
		"subjobs: {processes: 100, scratch: 2Gi, files: 5000, tmp: shared}": {Processes: 100, Scratch: 2 << 30, Files: 5000,
			SharedTmp: true},
		"subjobs: {tmp: own}": {},
	} {
		if d, err := ParseDaemon("f", []byte(text)); err != nil || d.Subjobs != want {
			t.Errorf("%s: %+v, %v; want %+v", text, d.Subjobs, err, want)
		}
	}
	_, err := ParseDaemon("f", []byte("subjobs: {processes: 0, scratch: 5, files: many, tmp: mine, memory: 1Gi}"))
	if err == nil {
		t.Fatal("taken")
	}
	for _, part := range []string{"subjobs.processes", "subjobs.scratch", "subjobs.files", "subjobs.tmp", "memory"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v\ndoes not name %s", err, part)
		}
	}
}
