package process

import (
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestWhatIsUnderWayIsNotBegunAgain, however often it is asked for; once it is done it may be, and there is a bound on all together.
func TestWhatIsUnderWayIsNotBegunAgain(t *testing.T) {
	e := &Executor{underway: map[underway]bool{}}
	begun, free := make(chan job.Token, 2*mostUnderway), make(chan struct{})
	wait := func(m protocol.Message) { begun <- m.Token; <-free }
	ask := func(seq uint64) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.once(protocol.Message{Kind: protocol.Settle, Token: job.Token{Epoch: 1, Seq: seq}}, wait)
	}
	for range 10 {
		ask(1)
	}
	for seq := range uint64(mostUnderway + 100) {
		ask(seq + 2)
	}
	if len(e.underway) != mostUnderway {
		t.Errorf("%d are under way, want %d", len(e.underway), mostUnderway)
	}
	close(free)
	e.tasks.Wait()
	if len(begun) != mostUnderway || len(e.underway) != 0 {
		t.Errorf("%d were begun, want %d; %d are left", len(begun), mostUnderway, len(e.underway))
	}
	ask(1)
	if e.tasks.Wait(); len(begun) != mostUnderway+1 {
		t.Error("what was done once is not begun again")
	}
}
