package cluster

import (
	"testing"
	"time"
)

func TestASealIsOfOnePodAndOneRecord(t *testing.T) {
	key, made := []byte("secret"), time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	before, after := made.Add(-time.Second), made.Add(time.Second)
	seal := Seal(key, "a", "p", "record")
	for _, c := range []struct {
		name                 string
		key                  []byte
		created              time.Time
		namespace, pod, text string
		seal                 string
		want                 bool
	}{
		{"as it was written", key, after, "a", "p", "record", seal, true},
		{"of another namespace", key, after, "b", "p", "record", seal, false},
		{"of another Pod", key, after, "a", "q", "record", seal, false},
		{"of another record", key, after, "a", "p", "records", seal, false},
		{"by another key", []byte("other"), after, "a", "p", "record", seal, false},
		{"without one", key, after, "a", "p", "record", "", false},
		{"without one, from before there were keys", key, before, "a", "p", "record", "", true},
		{"with a wrong one, from before there were keys", key, before, "a", "p", "record", "x", false},
		{"without a key", nil, after, "a", "p", "record", "", true},
	} {
		notes := map[string]string{AnnotationRun: c.text}
		if c.seal != "" {
			notes[AnnotationSeal] = c.seal
		}
		if got := Sealed(c.key, made, c.created, c.namespace, c.pod, notes); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
