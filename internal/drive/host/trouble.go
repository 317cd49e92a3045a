package host

import (
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// trouble is what keeps the daemon from deciding anything: its log takes no more for now.
type trouble struct{ cause error }

func (t *trouble) err() error {
	return errkind.Errorf(errkind.Exhausted, "%s: ask again once it is over, with the same request id", t.text())
}

func (t *trouble) text() string {
	return "nothing new can be made durable, so nothing new is decided (running subjobs go on): " + t.cause.Error()
}

// Retries of a log that takes no more for now begin at retryFirst and double up to retryLast.
const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 5 * time.Second
)

// setTrouble says it once and answers everybody who waits; a second cause in a row only replaces the text.
func (h *Host) setTrouble(cause error) {
	t := &trouble{cause: cause}
	if h.trouble.Swap(t) == nil {
		h.log.Error("stopped deciding", "reason", t.text(), "todo", "what the reason says; the daemon goes on by itself")
		h.observer.Trouble(true)
	}
	h.calls.interrupt(t.err())
}

func (h *Host) clearTrouble() {
	if h.trouble.Swap(nil) != nil {
		h.log.Info("decides again: the journal takes records")
		h.observer.Trouble(false)
	}
}
