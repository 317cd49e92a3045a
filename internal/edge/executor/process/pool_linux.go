package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
)

// pool has the supervisors that this daemon has started. One that has seen a subjob to its end waits for the next: it holds nothing of
// the former, in which it never was, and to start its program costs more than all else that it does for a subjob. It
// ends when its orders do: with the daemon at the latest, however that ends. It is safe for concurrent use.
type pool struct {
	program, runs string

	mu     sync.Mutex
	idle   []*worker
	closed bool
}

// mostIdle is how many supervisors wait for a subjob: more than run at once are of use to nobody.
func mostIdle() int { return 2 * runtime.NumCPU() }

// worker is one supervisor of the pool.
type worker struct {
	cmd    *exec.Cmd
	orders *os.File
	// now is what it does, nil for nothing. Guarded by the pool's mu, as dead is: its end has been seen.
	now  *spawned
	dead bool
}

// start has a supervisor look after the run directory of a name.
func (p *pool) start(name string) (*spawned, error) {
	for {
		w, used := p.take()
		if !used {
			var err error
			if w, err = p.add(); err != nil {
				return nil, err
			}
		}
		s := &spawned{used: used, begun: make(chan struct{}), gone: make(chan struct{})}
		s.kill = func() error { return p.kill(w, s) }
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
		_, _ = w.orders.WriteString(name + "\n") // if it is not there to read it, its end is about to be seen
		return s, nil
	}
}

// take takes an idle supervisor, if there is one.
func (p *pool) take() (w *worker, ok bool) {
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
func (p *pool) add() (*worker, error) {
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
	cmd := exec.Command(p.program, supervisor.Await, p.runs)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = "/", orders, words, words
	// It does little and many of it run: one thread of Go code at a time and a tight heap keep it small. A second one would take a tenth
	// more processor time, with what the threads tell each other.
	cmd.Env = append([]string{"GOMAXPROCS=1", "GOGC=50"}, planted.Environ()...)
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

// listen hears a supervisor until it is gone.
func (p *pool) listen(w *worker, said *os.File) {
	var last []byte
	for lines := bufio.NewScanner(said); lines.Scan(); {
		switch line := lines.Text(); line {
		case "begun":
			p.mu.Lock()
			if w.now != nil {
				close(w.now.begun)
			}
			p.mu.Unlock()
		case "done", "failed":
			p.release(w, line == "done")
		default: // what Go says when a program of its breaks down
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
		w.now.last = last
		close(w.now.gone)
	}
	p.idle = slices.DeleteFunc(p.idle, func(o *worker) bool { return o == w })
}

// release takes a supervisor back whose subjob is over, well or not.
func (p *pool) release(w *worker, well bool) {
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
	s.well = well
	close(s.gone)
}

// kill ends a supervisor, if it still looks after s.
func (p *pool) kill(w *worker, s *spawned) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.now != s {
		return nil
	}
	return w.cmd.Process.Kill()
}

// close ends the orders: who has nothing to do ends at once, who has a subjob after that.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, w := range p.idle {
		_ = w.orders.Close()
	}
	p.idle = nil
}
