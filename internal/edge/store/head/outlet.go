package head

import (
	"sync"
	"time"
)

// outlet sends what a call answers, one frame after the other, and empty ones while there is nothing else, so that the machine knows that
// it is worked on.
type outlet[F any] struct {
	send  func(*F) error
	stuck *watch // ends a send that the machine does not take

	mu   sync.Mutex // one frame at a time
	last time.Time  // of the last frame

	quit chan struct{}
	done chan struct{}
}

// newOutlet begins with the beats; idle makes one. The caller closes it.
func newOutlet[F any](beat time.Duration, stuck *watch, send func(*F) error, idle func() *F) *outlet[F] {
	o := &outlet[F]{send: send, stuck: stuck, quit: make(chan struct{}), done: make(chan struct{}), last: time.Now()}
	stuck.stop()
	go o.beat(beat, idle)
	return o
}

func (o *outlet[F]) beat(every time.Duration, idle func() *F) {
	defer close(o.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			o.mu.Lock()
			due := time.Since(o.last) >= every/2
			o.mu.Unlock()
			if due && o.put(idle()) != nil {
				return // the call finds out by itself
			}
		case <-o.quit:
			return
		}
	}
}

// put sends a frame.
func (o *outlet[F]) put(f *F) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stuck.start()
	defer o.stuck.stop()
	err := o.send(f)
	o.last = time.Now()
	return err
}

// close ends the beats.
func (o *outlet[F]) close() {
	close(o.quit)
	<-o.done
	o.stuck.stop()
}
