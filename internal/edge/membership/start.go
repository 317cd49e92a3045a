package membership

import (
	"crypto/rand"
	"path/filepath"
	"sync"
)

// startsFile has the starts of this machine's daemon: the last that the head has answered, and those since.
const startsFile = "starts.json"

// mostStarts bounds them: a daemon that starts so often while its head is away has to join again.
const mostStarts = 2000

// starts are those of this machine's daemon, the present one last. A head takes only a start that follows one that it has answered, so
// that a machine with an older copy of its data, or a second one with a copy, is told apart (authority.Started).
type starts struct {
	mu       sync.Mutex
	known    []string
	answered bool // the present one was
}

// startsKept is the content of startsFile.
type startsKept struct {
	Version int      `json:"version"`
	Starts  []string `json:"starts"`
}

// begin makes this start known here, durably, before anybody hears of it; it does nothing the second time.
func (s *starts) begin(dir string) (start string, before []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		var k startsKept
		path := filepath.Join(dir, startsFile)
		if _, err = readFile(path, "let this machine join again, with an empty directory", &k); err != nil {
			return "", nil, err
		}
		all := append(k.Starts, rand.Text()[:12])
		all = all[max(0, len(all)-mostStarts):]
		if err = writeFile(path, startsKept{Version: fileVersion, Starts: all}); err != nil {
			return "", nil, err
		}
		s.known = all
	}
	last := len(s.known) - 1
	return s.known[last], s.known[:last], nil
}

// answer notes that the head has answered this start: those before it are not needed any more.
func (s *starts) answer(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.known[len(s.known)-1:]
	s.answered = true
	if len(s.known) == 1 {
		return nil
	}
	if err := writeFile(filepath.Join(dir, startsFile), startsKept{Version: fileVersion, Starts: last}); err != nil {
		return err
	}
	s.known = last
	return nil
}
