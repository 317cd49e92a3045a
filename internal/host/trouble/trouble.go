// Package trouble is what keeps a daemon from working: a journal that takes no more for now, and what keeps its nodes from starting
// anything.
package trouble

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/nodes"
)

// Retries after a failure begin at RetryFirst and double up to RetryLast.
const (
	RetryFirst = 100 * time.Millisecond
	RetryLast  = time.Second
)

// State is what keeps the daemon from working now. Safe for concurrent use. Each source's report stands until the same source withdraws
// it: the recovery of one says nothing about another.
type State struct {
	log      *slog.Logger
	observer *observe.Observer
	inbox    *inbox.Inbox
	nodes    nodes.Nodes

	journal atomic.Pointer[string] // why nothing can be decided; nil: it can
	blocked atomic.Pointer[string] // why the nodes can start nothing; nil: they can
	mu      sync.Mutex
	reports map[string]string // by source
}

// New returns a state without trouble. The nodes get what keeps them from starting anything through the inbox.
func New(n nodes.Nodes, b *inbox.Inbox, o *observe.Observer, log *slog.Logger) *State {
	return &State{log: log, observer: o, inbox: b, nodes: n, reports: map[string]string{}}
}

// Stop notes that the journal takes no more for now, and returns the error for those that wait. It logs that once; a second cause in a row
// only replaces the text.
func (s *State) Stop(cause error) error {
	text := "nothing new can be made durable, so nothing new is decided (running subjobs go on): " + cause.Error()
	if s.journal.Swap(&text) == nil {
		s.log.Error("stopped deciding", "reason", text, "todo", "what the reason says; the daemon goes on by itself")
		s.observer.Trouble(true)
	}
	return s.Stopped()
}

// Resume notes that the journal takes records.
func (s *State) Resume() {
	if s.journal.Swap(nil) != nil {
		s.log.Info("decides again: the journal takes records")
		s.observer.Trouble(s.blocked.Load() != nil)
	}
}

// Stopped is why nothing is decided now, nil if it is.
func (s *State) Stopped() error {
	if text := s.journal.Load(); text != nil {
		return errkind.Errorf(errkind.Exhausted, "%s: ask again once it is over, with the same request id", *text)
	}
	return nil
}

// Report notes the report of a source. Every node of this machine gets the sum of all reports, and starts nothing while there are any.
func (s *State) Report(source string, said *protocol.Condition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.reports, source); said.Unhealthy {
		s.reports[source] = cmp.Or(said.Text, "it can start nothing")
	}
	var all []string
	for _, source := range slices.Sorted(maps.Keys(s.reports)) {
		all = append(all, s.reports[source])
	}
	sum := &protocol.Condition{Unhealthy: len(all) > 0, Text: strings.Join(all, "; ")}
	var why *string
	if sum.Unhealthy {
		why = &sum.Text
	}
	s.blocked.Store(why)
	s.observer.Trouble(sum.Unhealthy || s.journal.Load() != nil)
	s.nodes.Tell(protocol.Unhealthy, sum, s.inbox.Put)
}

// Text describes everything that keeps the daemon from working, for people; empty if nothing does. archive is why jobs can't be archived,
// if so.
func (s *State) Text(archive string) string {
	var all []string
	if text := s.journal.Load(); text != nil {
		all = append(all, *text)
	}
	if archive != "" {
		all = append(all, "jobs that are over stay in memory (everything else goes on): "+archive)
	}
	if text := s.blocked.Load(); text != nil {
		all = append(all, "no subjob can be started here, so nothing is sold (what runs goes on, and it is tried again): "+*text)
	}
	return strings.Join(all, "; ")
}
