package host

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
)

// trouble is what keeps the daemon from deciding anything: its journal takes no more for now.
type trouble struct{ cause error }

func (t *trouble) err() error {
	return errkind.Errorf(errkind.Exhausted, "%s: ask again once it is over, with the same request id", t.text())
}

func (t *trouble) text() string {
	return "nothing new can be made durable, so nothing new is decided (running subjobs go on): " + t.cause.Error()
}

// refusal is why no job is taken on now, nil if it is.
func (h *Host) refusal() error {
	if t := h.trouble.Load(); t != nil {
		return t.err()
	}
	return h.space.refusal()
}

// Retries of a journal that takes no more for now begin at retryFirst and double up to retryLast.
const (
	retryFirst = 100 * time.Millisecond
	retryLast  = time.Second
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
		h.observer.Trouble(h.ailing.Load() != nil)
	}
}

// ailments are what executor and inventory say each: that one is well again says nothing of the other.
type ailments struct {
	mu sync.Mutex
	of map[string]string
}

// ail notes what executor or inventory says; every node of this machine hears what both say together, in the order in which they said it, and starts nothing meanwhile.
func (h *Host) ail(from string, said *protocol.Ailment) {
	h.ailments.mu.Lock()
	defer h.ailments.mu.Unlock()
	if h.ailments.of == nil {
		h.ailments.of = map[string]string{}
	}
	if delete(h.ailments.of, from); said.Ails {
		h.ailments.of[from] = cmp.Or(said.Text, "it can start nothing")
	}
	var all []string
	for _, from := range slices.Sorted(maps.Keys(h.ailments.of)) {
		all = append(all, h.ailments.of[from])
	}
	a := &protocol.Ailment{Ails: len(all) > 0, Text: strings.Join(all, "; ")}
	if a.Ails {
		h.ailing.Store(&a.Text)
	} else {
		h.ailing.Store(nil)
	}
	h.observer.Trouble(a.Ails || h.trouble.Load() != nil)
	for i := range h.nodes {
		h.inbox.put(protocol.Message{Kind: protocol.Ailing, From: h.executorAddress(i), To: h.nodeAddress(i), Body: a})
	}
}

// troubles is all that keeps the daemon from working, for people; empty if nothing does.
func (h *Host) troubles() string {
	var all []string
	if t := h.trouble.Load(); t != nil {
		all = append(all, t.text())
	}
	if h.archivist != nil {
		if why := h.archivist.full.Load(); why != nil {
			all = append(all, "jobs that are over stay in memory (everything else goes on): "+*why)
		}
	}
	if a := h.ailing.Load(); a != nil {
		all = append(all, "no subjob can be started here, so nothing is sold (what runs goes on, and it is tried again): "+*a)
	}
	return strings.Join(all, "; ")
}
