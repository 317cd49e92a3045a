package config

import (
	"strings"
	"testing"
	"time"
)

func TestRetention(t *testing.T) {
	for text, want := range map[string]Retention{
		"queues: []":                                  {},
		"retention: {}":                               {},
		"retention: {age: 2h, jobs: 50}":              {Age: 2 * time.Hour, Jobs: 50},
		"retention: {jobs: 1_000_000}":                {Jobs: 1_000_000},
		"retention: {age: 1s}":                        {Age: time.Second},
		"queues: []\nretention: {age: 720h}":          {Age: 720 * time.Hour},
		"retention: {age: 168h, jobs: 1000000}":       {Age: 168 * time.Hour, Jobs: 1_000_000},
		"retention: {jobs: 1}\nsubjobs: {files: 500}": {Jobs: 1},
	} {
		if d, err := ParseDaemon("f", []byte(text)); err != nil || d.Retention != want {
			t.Errorf("%s: %+v, %v; want %+v", text, d.Retention, err, want)
		}
	}
	_, err := ParseDaemon("f", []byte("retention: {age: 1ms, jobs: 0, number: 3}"))
	if err == nil {
		t.Fatal("taken")
	}
	for _, part := range []string{"retention.age", "retention.jobs", "number"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v\ndoes not name %s", err, part)
		}
	}
}
