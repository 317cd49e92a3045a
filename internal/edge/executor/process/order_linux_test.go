package process_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/durable/power"
)

// promises is what must hold of whatever a power cut leaves.
type promises struct {
	// output and checkpoint are the files that count, with their content, where they are in the run directory and where
	// they are published.
	output, checkpoint                   map[string]string
	outputIn, checkpointIn               string
	outputPublished, checkpointPublished string
	// exited, settled: the node was told. settling: it has said what counts, and needs the result no more. unsaid: files were moved
	// behind the executor's back, so that they are surely somewhere only once it has looked.
	exited, settling, settled, unsaid bool
}

const runDir = "runs/1-1"

// wrong lists what a power cut has broken.
func (p *promises) wrong(left power.Image) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(left)) {
		data := left[name]
		if path.Base(name) == "result.json" && !json.Valid(data) {
			add("%s is torn: %q", name, data)
		}
	}
	result := of(left[runDir+"/result.json"])
	if p.exited && !p.settling && !result {
		add("the result that was told is gone")
	}
	if (result || p.exited) && !p.unsaid {
		p.whole(left, p.output, p.outputIn, p.outputPublished, add)
		p.whole(left, p.checkpoint, p.checkpointIn, p.checkpointPublished, add)
	}
	if p.settled {
		if of := string(left[path.Join(path.Dir(p.outputPublished), ".subjobs", path.Base(p.outputPublished))]); of != "1-1" {
			add("the output is said to be of subjob %q", of)
		}
		p.whole(left, p.output, p.outputPublished, p.outputPublished, add)
		p.whole(left, p.checkpoint, p.checkpointPublished, p.checkpointPublished, add)
	}
	return all
}

// of reports whether a result is of the subjob: one of an earlier subjob in the same directory may have come back.
func of(data []byte) bool {
	var r struct{ Lease struct{ Token job.Token } }
	return json.Unmarshal(data, &r) == nil && r.Lease.Token == token
}

// whole insists that files are where they were written or where they are published.
func (p *promises) whole(left power.Image, files map[string]string, here, there string, add func(string, ...any)) {
	for name, want := range files {
		a, inA := left[path.Join(here, name)]
		b, inB := left[path.Join(there, name)]
		if !(inA && string(a) == want) && !(inB && string(b) == want) {
			add("%s counts, and is neither whole in %s (%v, %q) nor in %s (%v, %q)", name, here, inA, a, there, inB, b)
		}
	}
}

// judge cuts the power before and after every sync and every message, and returns what is broken the first time. without is the
// number of a sync that is left out, -1 for none.
func (p promises) judge(h power.History, without int, seeds int) (wrong []string) {
	disk := power.Platter{}
	for i := range h {
		m := &h[i]
		for seed := range seeds {
			if i <= max(without, before(h)) {
				break // so far nothing is missing, or it is about others
			}
			if all := p.wrong(disk.Cut(m.Tree, drawn(i, seed))); len(all) > 0 {
				for j := range all {
					all[j] = fmt.Sprintf("power cut at moment %d (sync of %q, or %q), draw %d: %s", i, m.Path, m.Said, seed, all[j])
				}
				return all
			}
		}
		switch m.Said {
		case "":
			if i != without {
				disk.Synced(m)
			}
		case "settling":
			p.settling = true
		case "exited":
			p.exited = true
		case "settled":
			p.settled = true
		}
	}
	return nil
}

// drawn draws the power cut of a seed at a moment. With seed 0 nothing is kept that was not synced.
func drawn(moment, seed int) func(n int) int {
	if seed == 0 {
		return nil
	}
	return power.Draw(uint64(moment*1000 + seed + 1))
}

// before is the moment before which the recording is about other subjobs.
func before(h power.History) int {
	return slices.IndexFunc(h, func(m power.Moment) bool { return m.Said == "begins" })
}

// life is one subjob from its start until it is settled.
type life struct {
	// killed: its supervisor dies once it has reported all. moved: what it wrote was moved by a daemon that died before that
	// was durable.
	killed, moved bool
	// second: its run directory was another subjob's before.
	second bool
	// member: it is a gang's, and not the first. It has no checkpoint that counts.
	member bool
}

// recorded plays it and returns what was made durable when.
func (l life) recorded(t *testing.T) (power.History, promises) {
	t.Helper()
	var r power.Recorder
	b := newBench(t, func(o *process.Options) {
		r.Root, o.BootID = o.DataDir, "the first"
		if err := os.WriteFile(r.Log(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if l.second {
		for i := range 3 { // the first has a new one, the second one that was made in its place, the third that of the second
			m := lease(time.Minute, "sh", "-c", "stat -c %i .")
			m.Token.Epoch, m.Token.Seq = 0, uint64(i+1)
			b.run(m, job.Done)
			b.vacate(m)
		}
	}
	r.Said("begins")
	text := `stat -c %i .; mkdir $SLUICE_OUTPUT_DIR/d && echo one >$SLUICE_OUTPUT_DIR/d/f && echo two >$SLUICE_OUTPUT_DIR/g && echo state >$SLUICE_CHECKPOINT_DIR/s
		echo '{"progress":10,"checkpoint":true}' >$SLUICE_PROGRESS_FILE.new && mv $SLUICE_PROGRESS_FILE.new $SLUICE_PROGRESS_FILE`
	if l.killed {
		text += "; sleep 1000"
	}
	m := lease(time.Minute, "sh", "-c", text)
	m.Body.(*protocol.Work).Spec.Kind, m.Body.(*protocol.Work).Spec.Total = job.Steps, 20
	if l.member {
		m.Body.(*protocol.Work).Plan.Member, m.Body.(*protocol.Work).Plan.Members = 1, 2
	}
	b.do(m)
	b.next(protocol.Started)
	if l.killed {
		b.await("its progress", func() bool { p, ok := b.dir().ReadProgress(); return ok && p.Progress == 10 })
		note, err := b.dir().ReadNote()
		if err != nil {
			t.Fatal(err)
		}
		kill(t, note.PID)
	}
	got := b.next(protocol.Exited)
	r.Said("exited")
	if got.Body.(*protocol.Conclusion).Result.Progress != 10 || !got.Body.(*protocol.Conclusion).Result.Checkpoint {
		t.Fatalf("result %+v, want all of it with its checkpoint", got.Body.(*protocol.Conclusion).Result)
	}
	if l.second {
		before, _ := folders.LogPath(b.o.DataDir, "j", job.Token{Seq: 3}, false)
		if was, is := shim.Tail(before, 1, 100), shim.Tail(b.dir().Stdout(), 1, 100); was != is || was == "" {
			t.Fatalf("its work folder is %q, that of the one before was %q: want the same", is, was)
		}
	}
	p := promises{
		output: map[string]string{"d/f": "one\n", "g": "two\n"}, outputIn: runDir + "/output",
		outputPublished: "output/j/000000000000-000000000010",
		checkpoint:      map[string]string{"s": "state\n"}, checkpointIn: runDir + "/checkpoint", checkpointPublished: "checkpoints/j/1-1",
	}
	if l.member {
		p.outputPublished, p.checkpoint = "output/j/member-1/000000000000-000000000010", nil
	}
	if l.moved {
		for from, to := range map[string]string{p.outputIn: p.outputPublished, p.checkpointIn: p.checkpointPublished} {
			from, to = filepath.Join(r.Root, from), filepath.Join(r.Root, to)
			if err := errors.Join(os.Mkdir(filepath.Dir(to), 0o711), os.Rename(from, to)); err != nil {
				t.Fatal(err)
			}
		}
		p.unsaid = true
	}
	r.Said("settling")
	b.settle(true, job.Range{From: 0, To: 10})
	r.Said("settled")
	r.Said("over")
	h, err := r.History()
	if err != nil {
		t.Fatal(err)
	}
	return h, p
}

// draws is how many ways the power is cut at each moment.
const draws = 64

// TestAPowerCutTakesNothingThatCounts cuts the power at every moment between the start of a subjob and the answer that it is
// settled, and looks at what any disk may have kept: what was told stands, a result that is there is whole and has its output
// and checkpoint, and these are in the run directory or published at any time.
func TestAPowerCutTakesNothingThatCounts(t *testing.T) {
	for name, l := range map[string]life{
		"ended": {}, "supervisor killed": {killed: true}, "moved before": {moved: true}, "in another's place": {second: true},
		"a gang's second": {member: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, p := l.recorded(t)
			for _, w := range p.judge(h, -1, draws) {
				t.Error(w)
			}
			if t.Failed() {
				return
			}
			// The oracle is not blind: without any one sync it finds something, but for those named here.
			settling := slices.IndexFunc(h, func(m power.Moment) bool { return m.Said == "settling" })
			for i := range h {
				m := &h[i]
				// Those of the data directory are of its own folders and of the name of this start of the machine. That of the run
				// directory behind a move keeps what was moved from being in both places, where a file system allows that; in one that
				// was another's the names of the folders are on the disk since then.
				needless := l.member && strings.HasPrefix(m.Path, runDir+"/checkpoint") || m.Path == "." ||
					path.Dir(m.Path) == "." || m.Path == runDir && (i > settling || l.moved || l.second)
				if m.Said == "" && i > before(h) && !needless && p.judge(h, i, draws) == nil {
					t.Errorf("moment %d: nothing that counts is lost without the sync of %s", i, m.Path)
				}
			}
		})
	}
}
