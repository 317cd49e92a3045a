package supervisor

import (
	"bufio"
	"bytes"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// toldFor is how long after somebody outside of Sluice has told this process to end a command may end of the same: hosts kill what is left
// after 30 s (Slurm), or a minute and a half (systemd).
const toldFor = 2 * time.Minute

// told is what a host has told this process. A host that ends a machine, or its daemon with all that it has started, tells each process to
// end, the command's too. Which of them ends first, and which is told first, is nobody's promise.
type told struct{ ask chan chan time.Duration }

// began is what told counts from.
var began = time.Now() //nolint:gochecknoglobals // the process has one beginning

// listen notes SIGTERM instead of ending by it.
func (t *told) listen() {
	t.ask = make(chan chan time.Duration)
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGTERM)
	go func() {
		at := time.Duration(-1)
		for {
			select {
			case <-came:
				at = time.Since(began)
			case answer := <-t.ask:
				select {
				case <-came:
					at = time.Since(began)
				default:
				}
				answer <- at
			}
		}
	}()
}

// since reports whether that was after a subjob began, and not long ago. It waits up to patience for it.
func (t *told) since(start, patience time.Duration) bool {
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if at := t.last(); at > start && time.Since(began)-at < toldFor {
			return true
		}
		if !time.Now().Before(until) {
			return false
		}
	}
}

// last is when this process was told to end, counted from its beginning; below 0: never. What was sent before the call counts, though on a
// busy machine the command it also went to may have ended before any thread here was woken for it.
func (t *told) last() time.Duration {
	for tries := 0; tries < 1000 && pending(syscall.SIGTERM); tries++ {
		time.Sleep(time.Millisecond)
	}
	flush := make(chan os.Signal, 1)
	signal.Notify(flush, syscall.SIGTERM)
	signal.Stop(flush) // returns when what the runtime has received is in the channels
	answer := make(chan time.Duration)
	t.ask <- answer
	return <-answer
}

// pending reports whether a signal was sent to this process that no thread has been woken for yet.
func pending(s syscall.Signal) bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if mask, ok := bytes.CutPrefix(lines.Bytes(), []byte("ShdPnd:")); ok {
			set, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
			return err == nil && set&(1<<(s-1)) != 0
		}
	}
	return false
}
