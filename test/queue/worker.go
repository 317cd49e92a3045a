package queue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// WorkerVariable makes a test program a worker (Work); it has a Worker as JSON.
const WorkerVariable = "QUEUE_WORKER"

// Variables of the environment of a unit's process.
const (
	UnitVariable  = "QUEUE_UNIT"
	TokenVariable = "QUEUE_TOKEN"
)

const (
	// poll is how long a worker waits where the queue has nothing for it, or does not answer.
	poll = 20 * time.Millisecond
	// margin is what of its grace a worker keeps for the call that ends its unit.
	margin = time.Second
)

// Worker is the main program of a Pod: it does one unit after the other until SIGTERM.
type Worker struct {
	// Queue is where the queue is, such as http://127.0.0.1:80.
	Queue string
	// Command is what does a unit, with UnitVariable and TokenVariable in its environment.
	Command []string
	// Takes is how long a unit takes, Grace how long after SIGTERM comes SIGKILL.
	Takes, Grace time.Duration
}

// Work is a worker's life, from WorkerVariable. It returns the exit code.
func Work() int {
	var w Worker
	err := json.Unmarshal([]byte(os.Getenv(WorkerVariable)), &w)
	if err == nil && len(w.Command) == 0 {
		err = errkind.Errorf(errkind.Invalid, "%s names no command", WorkerVariable)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	w.work(term)
	return 0
}

func (w *Worker) work(term <-chan os.Signal) {
	for {
		g, ok := w.pull()
		if !ok {
			select {
			case <-term:
				return
			case <-time.After(poll):
			}
			continue
		}
		done, told := w.do(g, term)
		if done {
			w.tell("/commit", g)
		} else {
			w.tell("/back", g)
		}
		if told {
			return
		}
	}
}

// do runs a unit, and reports whether it is done, and whether SIGTERM came meanwhile.
func (w *Worker) do(g Grant, term <-chan os.Signal) (done, told bool) {
	select {
	case <-term: // while it was pulled: nothing is lost yet
		return false, true
	default:
	}
	cmd := exec.Command(w.Command[0], w.Command[1:]...)
	cmd.Env = append(os.Environ(), UnitVariable+"="+strconv.Itoa(g.Unit), TokenVariable+"="+strconv.Itoa(g.Token))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		time.Sleep(poll)
		return false, false
	}
	end, over := time.Now().Add(w.Takes), make(chan struct{})
	go func() {
		defer close(over)
		done = cmd.Wait() == nil
	}()
	select {
	case <-over:
		return done, false
	case <-term:
	}
	// What can't be done within the grace is given up now, so that the Pod's device is not held for nothing.
	if left := w.Grace - margin; time.Until(end) <= left {
		select {
		case <-over:
			return done, true
		case <-time.After(left):
		}
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-over
	return done, true
}

// call asks the queue once, and returns its answer whole, so that the connection can be used again.
func (w *Worker) call(path string, body []byte) (code int, answer []byte) {
	resp, err := http.Post(w.Queue+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil
	}
	return resp.StatusCode, answer
}

func (w *Worker) pull() (g Grant, ok bool) {
	code, answer := w.call("/pull", nil)
	return g, code == http.StatusOK && json.Unmarshal(answer, &g) == nil
}

// tell says how a unit ended until the queue has answered: SIGKILL at the end of the grace bounds it.
func (w *Worker) tell(path string, g Grant) {
	body, err := json.Marshal(g)
	if err != nil {
		panic(err)
	}
	for {
		if code, _ := w.call(path, body); code == http.StatusOK || code == http.StatusConflict {
			return
		}
		time.Sleep(poll)
	}
}
