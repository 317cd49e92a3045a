package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTheHookOnSubjects runs .githooks/commit-msg as git does.
func TestTheHookOnSubjects(t *testing.T) {
	for subject, ok := range map[string]bool{
		"core/node: end a lease before its look at memory":                           true,
		"home, node: wait for what outlives its lease":                               true,
		"docs/adr: note why leases have ranks":                                       true,
		"Merge branch 'x'":                                                           true,
		"Revert \"home: count twice\"":                                               true,
		"end a lease before its look at memory":                                      false,
		"core/node: End a lease":                                                     false,
		"core/node: end a lease.":                                                    false,
		"core/node: ends a lease":                                                    false,
		"core/node: fixed the lease":                                                 false,
		"core/node: the lease ends before its look at memory":                        false,
		"core/node: end a lease before its look at memory, and before anything else": false,
		"": false,
	} {
		message := filepath.Join(t.TempDir(), "COMMIT_EDITMSG")
		if err := os.WriteFile(message, []byte("# a comment\n\n"+subject+"\n\nWhy it is so.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if subject == "" {
			if err := os.WriteFile(message, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command("sh", filepath.Join(root, ".githooks/commit-msg"), message).CombinedOutput()
		if (err == nil) != ok {
			t.Errorf("%q: %v, want it accepted: %v\n%s", subject, err, ok, out)
		}
	}
}
