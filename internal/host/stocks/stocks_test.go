package stocks

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// machines are those that have joined, and whether they are away.
type machines map[job.NodeID]bool

func (m machines) Named(int) job.NodeID { return "" }

func (m machines) Away(name job.NodeID) error {
	away, joined := m[name]
	switch {
	case !joined:
		return errkind.Errorf(errkind.NotFound, "no machine %s has joined", name)
	case away:
		return errkind.Errorf(errkind.Unavailable, "it is away")
	}
	return nil
}

// stock is what a machine tells a gate: as many slices as are said.
func stock(name job.NodeID, n int) *protocol.Message {
	s := &protocol.Stock{}
	for i := range n {
		s.Slices = append(s.Slices, protocol.Slice{ID: job.SliceID(string(name) + "/" + string(rune('a'+i))), Speed: 1000})
	}
	return &protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Node, ID: string(name)},
		To: protocol.Address{Role: protocol.Gate, ID: "g"}, Body: s}
}

// told is who has how many slices, by name.
func told(s *Stocks) (names []job.NodeID, sizes []int) {
	for _, m := range s.Told() {
		names, sizes = append(names, job.NodeID(m.From.ID)), append(sizes, len(m.Body.(*protocol.Stock).Slices))
	}
	return names, sizes
}

// TestWhatMachinesHaveIsRemembered over restarts, as they told it last, until they are removed.
func TestWhatMachinesHaveIsRemembered(t *testing.T) {
	dir, joined := t.TempDir(), machines{"b": true, "a": false, "c": true}
	check := func(when string, s *Stocks, wantNames []job.NodeID, wantSizes []int) {
		t.Helper()
		if names, sizes := told(s); !slices.Equal(names, wantNames) || !slices.Equal(sizes, wantSizes) {
			t.Errorf("%s: %v have %v slices; want %v, %v", when, names, sizes, wantNames, wantSizes)
		}
	}
	reopened := func(s *Stocks) *Stocks {
		s.Close()
		s.Close()
		return Open(dir, joined, slog.New(slog.DiscardHandler))
	}
	s := Open(dir, joined, slog.New(slog.DiscardHandler))
	for _, m := range []*protocol.Message{stock("b", 1), stock("a", 2), stock("c", 3), stock("b", 2), stock("stranger", 1)} {
		s.Hear(m)
	}
	check("once they have told", s, []job.NodeID{"a", "b", "c"}, []int{2, 2, 3})
	s = reopened(s)
	check("after a restart", s, []job.NodeID{"a", "b", "c"}, []int{2, 2, 3})
	delete(joined, "a")
	check("one is removed", s, []job.NodeID{"b", "c"}, []int{2, 3})
	s.Forget("a")
	s.Forget("b")
	s = reopened(s)
	joined["a"] = true // others with these names have joined since, and have told nothing
	check("after a restart, one left and another removed", s, []job.NodeID{"c"}, []int{3})
	s.Hear(stock("c", 0))
	s = reopened(s)
	check("one has no slices any more", s, []job.NodeID{"c"}, []int{0})
	s.Close()
}

// TestWhatIsNoStockIsNotRemembered: it may be asked to hear any message, and remembers what a machine says of itself to a gate.
func TestWhatIsNoStockIsNotRemembered(t *testing.T) {
	s := Open(t.TempDir(), machines{"m": true, "gate": true}, slog.New(slog.DiscardHandler))
	defer s.Close()
	for what, change := range map[string]func(*protocol.Message){
		"to its own node": func(m *protocol.Message) { m.To.Role = protocol.Node },
		"to a zone":       func(m *protocol.Message) { m.To.Role = protocol.Zone },
		"of an executor":  func(m *protocol.Message) { m.From.Role = protocol.Executor },
		"of another kind": func(m *protocol.Message) { m.Kind, m.Body = protocol.Tick, nil },
		"with too many slices": func(m *protocol.Message) {
			m.Body = &protocol.Stock{Slices: make([]protocol.Slice, protocol.MostSlices+1)}
		},
		"as a head asks for it": func(m *protocol.Message) { m.From, m.To = m.To, m.From },
	} {
		m := stock("m", 1)
		change(m)
		if s.Hear(m); len(s.Told()) > 0 {
			t.Errorf("%s: %v is remembered", what, s.Told())
		}
	}
	var none *Stocks
	none.Hear(stock("m", 1))
	none.Forget("m")
	none.Close()
	if len(none.Told()) > 0 {
		t.Error("a daemon that no machine may join remembers some")
	}
}

// TestAFileThatCantBeRead is forgotten, and written again.
func TestAFileThatCantBeRead(t *testing.T) {
	for what, text := range map[string]string{
		"no JSON":                 "{",
		"of another version":      `{"Version":2,"Told":{}}`,
		"with what is no message": `{"Version":1,"Told":{"m":"AAAA"}}`,
		"with no message":         `{"Version":1,"Told":{"m":""}}`,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, FileName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Open(dir, machines{"m": true, "n": true}, slog.New(slog.DiscardHandler))
		if names, _ := told(s); len(names) > 0 {
			t.Errorf("%s: there are %v", what, names)
		}
		s.Hear(stock("n", 1))
		s.Close()
		s = Open(dir, machines{"m": true, "n": true}, slog.New(slog.DiscardHandler))
		if names, _ := told(s); !slices.Equal(names, []job.NodeID{"n"}) {
			t.Errorf("%s: then there are %v", what, names)
		}
		s.Close()
	}
}

// TestWhatOneMachineSaidIsNoOthers: an entry of the file under another name is left out.
func TestWhatOneMachineSaidIsNoOthers(t *testing.T) {
	dir, joined := t.TempDir(), machines{"a": true, "b": true}
	s := Open(dir, joined, slog.New(slog.DiscardHandler))
	s.Hear(stock("a", 1))
	s.mu.Lock()
	s.known["b"] = s.known["a"]
	s.change()
	s.mu.Unlock()
	s.Close()
	s = Open(dir, joined, slog.New(slog.DiscardHandler))
	defer s.Close()
	if names, _ := told(s); !slices.Equal(names, []job.NodeID{"a"}) {
		t.Errorf("there are %v", names)
	}
}

// TestAFullDisk: what could not be written is when there is room, at the end at the latest.
func TestAFullDisk(t *testing.T) {
	dir, joined := filepath.Join(t.TempDir(), "data"), machines{"m": true}
	s := Open(dir, joined, slog.New(slog.DiscardHandler)) // no file can be written there yet
	s.Hear(stock("m", 1))
	s.save()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = Open(dir, joined, slog.New(slog.DiscardHandler))
	defer s.Close()
	if names, _ := told(s); !slices.Equal(names, []job.NodeID{"m"}) {
		t.Errorf("there are %v", names)
	}
}
