package process_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim/durable/power"
	"sluice.dev/sluice/internal/edge/journal"
)

// TestAPowerCutIsTakenUp starts an executor on what power cuts have left, under another start of the machine. It never calls it
// damage; a result that was told is there; what of it counts is published once it is settled again; and what is not told of by
// anybody is put away.
func TestAPowerCutIsTakenUp(t *testing.T) {
	const draws = 2
	for name, l := range map[string]life{
		"ended": {}, "supervisor killed": {killed: true}, "in another's place": {second: true}, "a gang's second": {member: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, p := l.recorded(t)
			disk := power.Platter{}
			exited, settling, settled := false, false, false
			for i := range h {
				m := &h[i]
				for seed := range draws {
					if i < before(h) {
						break
					}
					what := fmt.Sprintf("power cut at moment %d (sync of %q, or %q), draw %d", i, m.Path, m.Said, seed)
					takeUp(t, what, disk.Cut(m.Tree, drawn(i, seed)), &p, exited && !settling, settling && !settled)
				}
				switch m.Said {
				case "":
					disk.Synced(m)
				case "exited":
					exited = true
				case "settling":
					settling = true
				case "settled":
					settled = true
				}
			}
		})
	}
}

// takeUp starts an executor on what a power cut left. told: the node has the result and nothing else; settling: it has said what counts.
func takeUp(t *testing.T, what string, left power.Image, p *promises, told, settling bool) {
	t.Helper()
	root := t.TempDir()
	left.Put(root)
	self, _ := os.Executable()
	said := make(chan protocol.Message, 8)
	var log strings.Builder
	ex, err := process.New(process.Options{DataDir: root, ShimPath: self, Isolation: treeOnly(), BootID: "the next",
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Deliver: func(m protocol.Message) { said <- m }})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer func() { must(ex.Close()) }()
	found, err := ex.Find(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	found = slices.DeleteFunc(found, func(f executor.Found) bool { return f.Token != token }) // one that came before may come back
	if told && (len(found) != 1 || found[0].Result == nil || found[0].Result.Progress != 10) {
		t.Fatalf("%s: found %+v, want the result that was told", what, found)
	}
	counts := settling || len(found) == 1 && found[0].Result.Progress == 10
	settle := protocol.Message{Kind: protocol.Settle, Token: token, Job: "j", Body: &protocol.Settlement{}}
	if counts {
		settle.Body.(*protocol.Settlement).Range, settle.Body.(*protocol.Settlement).Committed = job.Range{From: 0, To: 10}, true
	}
	ex.Do(settle, journal.Position{})
	select {
	case m := <-said:
		if m.Kind != protocol.Settled {
			t.Fatalf("%s: heard %+v, want that it is settled", what, m)
		}
	case <-time.After(patience):
		t.Fatalf("%s: it is not settled: %s", what, log.String())
	}
	for name, want := range p.output {
		if got, err := os.ReadFile(filepath.Join(root, p.outputPublished, name)); counts && string(got) != want {
			t.Fatalf("%s: published %q, %v; want %q in %s", what, got, err, want, name)
		}
	}
	if runs, err := os.ReadDir(filepath.Join(root, "runs")); err != nil ||
		slices.ContainsFunc(runs, func(e os.DirEntry) bool { return e.Name() == token.String() }) {
		t.Fatalf("%s: left %v, %v", what, runs, err)
	}
}
