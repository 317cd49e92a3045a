package process

import (
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestAKilledProbeIsAskedAgain: a kill of supervisors may hit the one that only reports what it can do, and the daemon must
// start all the same.
func TestAKilledProbeIsAskedAgain(t *testing.T) {
	dir := t.TempDir()
	shim := filepath.Join(dir, "shim")
	script := "#!/bin/sh\nif [ ! -e " + dir + "/twice ]; then [ -e " + dir + "/once ] && touch " + dir + "/twice; touch " + dir +
		"/once; kill -9 $$; fi\necho '{\"PIDNamespace\": true}'\n"
	if err := os.WriteFile(shim, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{DataDir: filepath.Join(dir, "data"), ShimPath: shim, Deliver: func(protocol.Message) {}})
	if err != nil {
		t.Fatal(err)
	}
	if !e.iso.PIDNamespace {
		t.Error("what the third one said is not taken")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
