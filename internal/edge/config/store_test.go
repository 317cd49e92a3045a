package config

import (
	"strings"
	"testing"
)

func TestStore(t *testing.T) {
	for text, want := range map[string]string{"{}": "", "store: path:/mnt/x": "path:/mnt/x",
		"store: s3://b/p?endpoint=https://h:1": "s3://b/p?endpoint=https://h:1"} {
		if d, err := ParseDaemon("f", []byte(text)); err != nil || d.Store != want {
			t.Errorf("%s: %q, %v", text, d.Store, err)
		}
	}
	if _, err := ParseDaemon("f", []byte("store: {kind: path}")); err == nil || !strings.Contains(err.Error(), "path:/mnt/shared/sluice") {
		t.Errorf("a mapping: %v", err)
	}
	digest := strings.Repeat("0a", 32)
	const file = "apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {items: {total: 1, perItem: 1s}, memory: 1Mi, " +
		"command: [a], workdir: "
	for workdir, want := range map[string]string{"store://" + digest: digest, ".": "", "store": ""} {
		jobs, err := ParseJobs("f", []byte(file+workdir+"}"))
		if err != nil || jobs[0].Stored() != want || jobs[0].Workdir != workdir {
			t.Errorf("workdir %s: %+v, %v", workdir, jobs, err)
		}
	}
	for _, bad := range []string{"store://", "store://x", "store://" + strings.ToUpper(digest), "store://" + digest + "0"} {
		if _, err := ParseJobs("f", []byte(file+bad+"}")); err == nil || !strings.Contains(err.Error(), "sluice store put") {
			t.Errorf("workdir %s: %v", bad, err)
		}
	}
}
