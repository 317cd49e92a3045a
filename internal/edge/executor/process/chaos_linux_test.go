package process_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// Whatever is killed and whenever the daemon restarts: every subjob is started at most once, ends once, and when its end
// is known nothing of it lives.
func TestChaos(t *testing.T) {
	b := newBench(t, nil)
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	const n = 12
	ended := map[job.Token]bool{}
	leases := make([]protocol.Message, n)
	for i := range leases {
		command := []string{"sh", "-c", "setsid sleep 100 & sleep 0." + fmt.Sprint(rnd.IntN(9))}
		if i%3 == 0 {
			command = self(t, "stubborn")
		}
		leases[i] = lease(time.Duration(300+rnd.IntN(1500))*time.Millisecond, command...)
		leases[i].Token.Seq = uint64(i + 1)
	}
	// One has all the time that it needs to start: on a busy machine the others may all be over, or fenced, before they do.
	first := &leases[1]
	first.Body.(*protocol.Work).End = first.Body.(*protocol.Work).Start.Add(patience)
	b.do(*first)
	b.next(protocol.Started)
	for i := range leases {
		b.do(leases[i])
	}
	dir := func(t job.Token) shim.Dir {
		return shim.Dir(strings.Replace(string(b.dir()), token.String(), t.String(), 1))
	}
	end := func(tok job.Token, r *job.Result) {
		if r == nil || r.Outcome == 0 {
			t.Errorf("%v ended without a result", tok)
		}
		if left := living(string(dir(tok)) + "/"); len(left) != 0 {
			t.Errorf("%v ended, but processes %v live", tok, left)
		}
		ended[tok] = true
	}
	for until := time.Now().Add(patience); len(ended) < n && time.Now().Before(until); {
		select {
		case m := <-b.said:
			if m.Kind == protocol.Exited {
				end(m.Token, m.Body.(*protocol.Conclusion).Result)
			}
			continue
		case <-time.After(20 * time.Millisecond):
		}
		m := leases[rnd.IntN(n)]
		switch rnd.IntN(5) {
		case 0:
			if note, err := dir(m.Token).ReadNote(); err == nil && !ended[m.Token] {
				if p, err := os.FindProcess(note.PID); err == nil {
					_ = p.Kill()
				}
			}
		case 1:
			if err := b.ex.Close(); err != nil {
				t.Fatal(err)
			}
			for _, f := range b.open() {
				if f.Result != nil {
					end(f.Token, f.Result)
				}
			}
			for _, l := range leases { // as a node does whose lease has no run directory
				if _, err := os.Stat(string(dir(l.Token))); err != nil {
					ended[l.Token] = true
				}
			}
		case 2:
			b.do(m)
		case 3:
			b.do(protocol.Message{Kind: protocol.Stop, Token: m.Token, Body: &protocol.Halt{}})
		}
	}
	if len(ended) != n {
		t.Fatalf("only %d of %d subjobs ended", len(ended), n)
	}
	starts, ends := map[string]int{}, map[string]int{}
	for _, e := range b.events() {
		if e.What == "start" {
			starts[e.Token]++
		} else {
			ends[e.Token]++
		}
	}
	for tok, k := range starts {
		if k != 1 || ends[tok] != 1 {
			t.Errorf("%s was started %d times and ended %d times", tok, k, ends[tok])
		}
	}
	if len(starts) == 0 {
		t.Error("nothing was started")
	}
}
