package process

import (
	"os"
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestProbesAreNotInEachOthersWay: subjobs that fail by themselves probe, and so does a node that may be unhealthy. However many
// probe at once, a node that is well is found well.
func TestProbesAreNotInEachOthersWay(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{DataDir: t.TempDir(), ShimPath: self, Deliver: func(protocol.Message) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	const many = 8
	found := make(chan error)
	for range many {
		go func() { found <- e.probe() }()
	}
	for range many {
		if err := <-found; err != nil {
			t.Error(err)
		}
	}
}
