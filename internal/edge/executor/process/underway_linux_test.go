package process

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
)

// TestWhatIsUnderWayIsNotBegunAgain, however often it is asked for; once it is done it may be, and there is a bound on all together.
func TestWhatIsUnderWayIsNotBegunAgain(t *testing.T) {
	e := &Executor{underway: map[underway]bool{}}
	begun, free := make(chan job.Token, 2*mostUnderway), make(chan struct{})
	wait := func(m protocol.Message, _ func(protocol.Message)) { begun <- m.Token; <-free }
	ask := func(seq uint64) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.once(protocol.Message{Kind: protocol.Settle, Token: job.Token{Epoch: 1, Seq: seq}, Body: &protocol.Settlement{}}, wait)
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

// TestWhoHasTheAnswerMayAskAgain: that comes while what answered has not returned yet, too.
func TestWhoHasTheAnswerMayAskAgain(t *testing.T) {
	heard, free := make(chan protocol.Message, 2), make(chan struct{})
	e := &Executor{underway: map[underway]bool{}, box: executor.NewOutbox(func(m protocol.Message) { heard <- m })}
	settle := protocol.Message{Kind: protocol.Settle, Token: job.Token{Epoch: 1, Seq: 1}, Body: &protocol.Settlement{}}
	for range 2 {
		e.mu.Lock()
		e.once(settle, func(m protocol.Message, answer func(protocol.Message)) {
			answer(protocol.Message{Kind: protocol.Settled, Token: m.Token})
			<-free
		})
		e.mu.Unlock()
		select {
		case <-heard:
		case <-time.After(time.Minute):
			t.Fatal("nothing was answered")
		}
	}
	close(free)
	e.tasks.Wait()
}
