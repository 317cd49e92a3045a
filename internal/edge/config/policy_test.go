package config

import "testing"

func TestPolicyOfADaemon(t *testing.T) {
	for text, want := range map[string]string{"policy: fair\nqueues: []": "fair", "queues: []": ""} {
		if d, err := ParseDaemon("f", []byte(text)); err != nil || d.Policy != want {
			t.Errorf("%q: policy %q, %v; want %q", text, d.Policy, err, want)
		}
	}
	if _, err := ParseDaemon("f", []byte("policy: [fair]")); err == nil {
		t.Error("a list of policies was taken")
	}
}
