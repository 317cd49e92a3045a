package host

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/tape"
	"sluice.dev/sluice/internal/host/datadir"
)

func readTape(t *testing.T, dataDir string) []tape.Entry {
	t.Helper()
	dir := filepath.Join(dataDir, datadir.TapeDir)
	boots, err := tape.Boots(dir)
	if err != nil || len(boots) == 0 {
		t.Fatalf("boots %q, %v", boots, err)
	}
	r, err := tape.Open(dir, boots[len(boots)-1])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var all []tape.Entry
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
}

func TestACallThatGivesUpIsToldHowToAskAgain(t *testing.T) {
	r := newRig(t)
	h, err := r.open() // not running: nobody answers
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Submit(ctx, "r1", spec("a"), nil); errkind.Of(err) != errkind.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}
