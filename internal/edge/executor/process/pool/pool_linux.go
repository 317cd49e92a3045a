// Package pool reuses supervisors: one that has seen a subjob to its end waits for the next.
package pool

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
	// residents are the supervisors whose programs wait for their next subjobs.
	residents map[*worker]*Resident
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
	// Stays, known once it is done, is its program where that waits for another subjob; nil: it is gone.
	Stays *Resident
	// Lost, known then: the program that was to go on was gone, and the subjob has not begun.
	Lost bool
}

// Resident is a program that waits for its next subjob, with its supervisor.
type Resident struct {
	// Memory is what it held when it began to wait, in bytes.
	Memory int64
	// Gone is closed when it waits no more: neither it nor its supervisor is there. Well may be read from then on: with all its
	// processes, by its supervisor's word.
	Gone chan struct{}
	Well bool

	p *Pool
	w *worker
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
		case "gone":
			p.gone(w)
		default:
			if memory, ok := strings.CutPrefix(line, "stays "); ok {
				p.stays(w, memory)
				continue
			}
			// a panic of the Go runtime
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
	if r := p.residents[w]; r != nil {
		delete(p.residents, w)
		close(r.Gone)
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
	p.retire(w)
	s.Well = well
	close(s.Gone)
}

// retire keeps a supervisor without a subjob, if it is wanted. p.mu is held.
func (p *Pool) retire(w *worker) {
	if p.closed || len(p.idle) >= mostIdle() {
		_ = w.orders.Close()
	} else {
		p.idle = append(p.idle, w)
	}
}

// stays notes that a supervisor's subjob is over, and that its program waits for the next.
func (p *Pool) stays(w *worker, memory string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := w.now
	if s == nil {
		return
	}
	r := &Resident{Gone: make(chan struct{}), p: p, w: w}
	r.Memory, _ = strconv.ParseInt(memory, 10, 64)
	if p.residents == nil {
		p.residents = map[*worker]*Resident{}
	}
	p.residents[w] = r
	if p.closed {
		_ = w.orders.Close() // it ends, and its program first
	}
	w.now = nil
	s.Well, s.Stays = true, r
	close(s.Gone)
}

// gone notes that a program that waited is gone. A subjob that it was to have then has not begun.
func (p *Pool) gone(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.residents[w]; r != nil {
		delete(p.residents, w)
		r.Well = true
		close(r.Gone)
	}
	if s := w.now; s != nil {
		w.now = nil
		s.Lost = true
		close(s.Gone)
	}
	p.retire(w)
}

// Next gives the program its next subjob, in the run directory of a name. If it is gone by then the subjob is lost.
func (r *Resident) Next(name string) *Supervisor {
	s := &Supervisor{Used: true, Begun: make(chan struct{}), Gone: make(chan struct{})}
	p := r.p
	s.Kill = func() error { return p.kill(r.w, s) }
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.residents[r.w] != r || p.closed {
		s.Lost = true
		close(s.Gone)
		return s
	}
	delete(p.residents, r.w)
	r.w.now = s
	_, _ = r.w.orders.WriteString("next " + name + "\n") // if it is dead, listen is about to see that
	return s
}

// Dismiss ends the program, which has a moment to do so by itself.
func (r *Resident) Dismiss() {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.residents[r.w] == r {
		_, _ = r.w.orders.WriteString("dismiss\n") // the same
	}
}

// Kill ends its supervisor at once, if it still waits.
func (r *Resident) Kill() {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.residents[r.w] == r {
		_ = r.w.cmd.Process.Kill()
	}
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
	for w := range p.residents {
		_ = w.orders.Close()
	}
	p.idle = nil
}
