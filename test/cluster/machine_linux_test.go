package cluster

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// diskSize is the room of a data directory.
	diskSize = 256 << 20
	// answerTime is how long a machine's first process may take for what it was told.
	answerTime = 20 * time.Second
)

// machine is the head or one that has joined it: namespaces, a disk, and a daemon in them.
type machine struct {
	number int
	name   string
	// dir has its log and its disk, which the data directory is.
	dir, data string
	// group is the control group below which its own are, one for each boot; empty: there is none.
	group string
	place *place
	// args of its daemon.
	args []string

	mu    sync.Mutex
	boots int
	first *exec.Cmd // nil: it is switched off
	in    io.WriteCloser
	out   *bufio.Reader
}

func newMachine(n *network, number int, name, dir, group string) (*machine, error) {
	m := &machine{number: number, name: name, dir: filepath.Join(dir, name), group: group}
	m.data = filepath.Join(m.dir, "data")
	if err := os.MkdirAll(m.data, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mount("sluice-cluster", m.data, "tmpfs", 0, fmt.Sprintf("mode=700,size=%d", diskSize)); err != nil {
		return nil, fmt.Errorf("a disk for %s: %w", name, err)
	}
	var err error
	if m.place, err = newPlace(started(number)); err != nil {
		return nil, fmt.Errorf("namespaces for %s: %w", name, err)
	}
	if err = m.place.do(func() error { return n.plug(number) }); err != nil {
		return nil, err
	}
	return m, m.on()
}

// on switches the machine on. No daemon runs yet.
func (m *machine) on() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boots++
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it does not fail
	text := fmt.Sprintf("%x-%x-%x-%x-%x\n", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	if err := os.WriteFile(filepath.Join(m.dir, "boot_id"), []byte(text), 0o600); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), insideVariable+"="+m.dir, fmt.Sprintf("%s=%d", skewVariable, skew(m.number)/time.Second))
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWCGROUP}
	if m.group != "" {
		dir := filepath.Join(m.group, fmt.Sprintf("%s-%d", m.name, m.boots))
		if err = os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer f.Close()
		c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(f.Fd())
	}
	if m.in, err = c.StdinPipe(); err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	m.out = bufio.NewReader(out)
	if err = m.place.do(c.Start); err != nil {
		return fmt.Errorf("switching on %s: %w", m.name, err)
	}
	m.first = c
	return m.answer()
}

// answer of the machine's first process to what it was told. mu is held.
func (m *machine) answer() error {
	late := time.AfterFunc(answerTime, func() { _ = m.first.Process.Kill() })
	defer late.Stop()
	switch text, err := m.out.ReadString('\n'); {
	case err != nil:
		return fmt.Errorf("machine %s: %w", m.name, err)
	case text != "ok\n":
		return fmt.Errorf("machine %s: %s", m.name, strings.TrimSpace(text))
	}
	return nil
}

func (m *machine) tell(text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == nil {
		return fmt.Errorf("machine %s is switched off", m.name)
	}
	if _, err := fmt.Fprintln(m.in, text); err != nil {
		return fmt.Errorf("machine %s: %w", m.name, err)
	}
	return m.answer()
}

// start the daemon.
func (m *machine) start() error {
	text, err := json.Marshal(m.args)
	if err != nil {
		return err
	}
	return m.tell("start " + string(text))
}

// kill the daemon. What it has started runs on.
func (m *machine) kill() error { return m.tell("kill") }

// stop the daemon's process, and have it go on.
func (m *machine) stop() error { return m.tell("stop") }
func (m *machine) goOn() error { return m.tell("continue") }

// off cuts the power: every process of the machine is gone at once. Its disk stays.
func (m *machine) off() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == nil {
		return
	}
	_ = m.first.Process.Kill() // the first process, and so all
	_ = m.first.Wait()
	m.first = nil
}

// fill leaves no room on the machine's disk and returns what gives it back.
func (m *machine) fill() (room func() error, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(m.data, &s); err != nil {
		return nil, err
	}
	size := func(bytes uint64) error {
		return unix.Mount("", m.data, "", unix.MS_REMOUNT, fmt.Sprintf("size=%d", bytes))
	}
	// What it writes meanwhile makes less room than is asked for an error.
	for used := (s.Blocks - s.Bfree) * uint64(s.Bsize); used < diskSize; used += 64 << 10 {
		if err = size(used); err == nil {
			break
		}
	}
	return func() error { return size(diskSize) }, err
}

// ended returns how often the daemon has ended by itself since the last call.
func (m *machine) ended() []string {
	path := filepath.Join(m.dir, endedFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	_ = os.Remove(path) // it is read once
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// supervisors of subjobs that run on the machine now.
func (m *machine) supervisors() (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		line, _ := os.ReadFile(path)
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
		if bytes.Contains(line, []byte("sluice-shim")) && bytes.Contains(line, []byte(m.data+"/")) &&
			!bytes.HasPrefix(name, []byte("sluice-init")) {
			n++
		}
	}
	return n
}

// clear empties the machine's disk.
func (m *machine) clear() error {
	list, err := os.ReadDir(m.data)
	for _, e := range list {
		err = errors.Join(err, os.RemoveAll(filepath.Join(m.data, e.Name())))
	}
	return err
}

// removeGroups removes a control group and all below it, where nothing runs any more.
func removeGroups(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range slices.Backward(dirs) {
		gone := os.Remove(d)
		for end := time.Now().Add(5 * time.Second); errors.Is(gone, unix.EBUSY) && time.Now().Before(end); gone = os.Remove(d) {
			time.Sleep(20 * time.Millisecond) // processes that were killed leave soon
		}
		err = errors.Join(err, gone)
	}
	return err
}

// local is where each daemon's API listens, on its own machine.
const local = "127.0.0.1:7117"

// headAddress is where the head listens for machines.
func headAddress() string { return address(0).String() + ":7118" }
