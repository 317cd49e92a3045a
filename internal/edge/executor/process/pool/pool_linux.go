// Package pool reuses supervisors: one that has seen a subjob to its end waits for the next.
package pool

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
)

// Pool holds the supervisors that a daemon has started. One that has seen a subjob to its end is kept for the next, since starting its
// program costs more than all else that it does for a subjob; it runs outside of the subjob and keeps nothing of it. A
// supervisor ends when its standard input does: with the daemon at the latest, however that ends. Safe for concurrent use.
type Pool struct {
	// Program is the supervisor's, Runs the folder of run directories.
	Program, Runs string

	mu     sync.Mutex
	idle   []*worker
	closed bool
}

// Supervisor is a supervisor with its subjob, started by this daemon or by an earlier one.
type Supervisor struct {
	// Kill ends it at once. It is no error if it has ended.
	Kill func() error
	// Begun is closed once it has reported that the command runs; nil if its reports can't be read.
	Begun chan struct{}
	// Gone is closed when it is done with this subjob. Well and Last may be read from then on: it had done all that it was to do; what
	// it said last, if it broke down.
	Gone chan struct{}
	Well bool
	Last []byte
	// Used: it has had other subjobs before.
	Used bool
}

// mostIdle is how many supervisors wait for a subjob: more than run at once are of use to nobody.
func mostIdle() int { return 2 * runtime.NumCPU() }

// worker is one supervisor of the pool.
type worker struct {
	cmd    *exec.Cmd
	orders *os.File
	// now is its present subjob, nil while idle; dead: its end has been seen. Both are guarded by the pool's mu.
	now  *Supervisor
	dead bool
}

// Start makes a supervisor look after the run directory of a name.
func (p *Pool) Start(name string) (*Supervisor, error) {
	for {
		w, used := p.take()
		if !used {
			var err error
			if w, err = p.add(); err != nil {
				return nil, err
			}
		}
		s := &Supervisor{Used: used, Begun: make(chan struct{}), Gone: make(chan struct{})}
		s.Kill = func() error { return p.kill(w, s) }
		p.mu.Lock()
		lost := w.dead
		if !lost {
			w.now = s
		}
		p.mu.Unlock()
		if lost && used {
			continue // it was killed while it waited
		}
		if lost {
			return nil, fmt.Errorf("the supervisor ended as soon as it was started: %s", w.cmd.ProcessState)
		}
		_, _ = w.orders.WriteString(name + "\n") // if it is dead, listen is about to see that
		return s, nil
	}
}

// take takes an idle supervisor, if there is one.
func (p *Pool) take() (w *worker, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		w = p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
	}
	return w, w != nil
}

// add starts a supervisor, in a session of its own.
func (p *Pool) add() (*worker, error) {
	orders, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = orders.Close() }()
	said, words, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	defer func() { _ = words.Close() }()
	cmd := exec.Command(p.Program, supervisor.Await, p.Runs)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = "/", orders, words, words
	// It does little and many of it run: one thread of Go code at a time and a tight heap keep it small. A second one would take a tenth
	// more processor time, with what the threads tell each other.
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=50"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	shim.SealDescriptors(3)
	if err := cmd.Start(); err != nil {
		_, _ = in.Close(), said.Close()
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	w := &worker{cmd: cmd, orders: in}
	go p.listen(w, said)
	return w, nil
}

// listen reads the reports of a supervisor until it ends.
func (p *Pool) listen(w *worker, said *os.File) {
	var last []byte
	for lines := bufio.NewScanner(said); lines.Scan(); {
		switch line := lines.Text(); line {
		case "begun":
			p.mu.Lock()
			if w.now != nil {
				close(w.now.Begun)
			}
			p.mu.Unlock()
		case "done", "failed":
			p.release(w, line == "done")
		default: // a panic of the Go runtime
			if len(last) < 16<<10 {
				last = append(append(last, line...), '\n')
			}
		}
	}
	_ = said.Close()
	_ = w.cmd.Wait() // reaps it; what it did is in the run directory
	_ = w.orders.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	w.dead = true
	if w.now != nil {
		w.now.Last = last
		close(w.now.Gone)
	}
	p.idle = slices.DeleteFunc(p.idle, func(o *worker) bool { return o == w })
}

// release takes a supervisor back whose subjob is over, well or not.
func (p *Pool) release(w *worker, well bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := w.now
	if s == nil {
		return
	}
	w.now = nil
	if p.closed || len(p.idle) >= mostIdle() {
		_ = w.orders.Close()
	} else {
		p.idle = append(p.idle, w)
	}
	s.Well = well
	close(s.Gone)
}

// kill ends a supervisor, if it still looks after s.
func (p *Pool) kill(w *worker, s *Supervisor) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.now != s {
		return nil
	}
	return w.cmd.Process.Kill()
}

// Close closes the supervisors' standard inputs: an idle one ends at once, one with a subjob after that.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, w := range p.idle {
		_ = w.orders.Close()
	}
	p.idle = nil
}
