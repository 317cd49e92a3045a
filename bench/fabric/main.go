// Command fabric compares two ways to carry messages between machines and their head: a stream that each machine keeps open
// (edge/fabric/stream), and NATS within the head, with a user for each machine who may speak and listen under its own name alone. Machines
// are connections of a child process, over TLS on the loopback.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"sluice.dev/sluice/bench/page"
)

// head is one contestant's side that listens.
type head interface {
	// addr is where machines call, as they are told.
	addr() string
	// to sends a payload to a machine.
	to(name string, payload []byte)
	// linked is how many machines are there.
	linked() int
	close()
}

// member is one machine's side.
type member interface {
	up(payload []byte)
	close()
}

// contestant makes both sides. got is called for every payload that arrives.
type contestant struct {
	name   string
	head   func(names []string, addr string, got func(payload []byte)) (head, error)
	member func(name, addr string, got func(payload []byte)) (member, error)
}

var contestants = []contestant{{"stream", newStreamHead, newStreamMember}, {"nats", newNATSHead, newNATSMember}}

func main() {
	machines := flag.Int("machines", 200, "how many machines")
	child := flag.String("child", "", "be the machines of this contestant")
	addr := flag.String("addr", "", "where the child finds the head")
	own := flag.String("own", "", "measure this contestant in this process")
	write := flag.String("write", "", "write the table between the marks in this file")
	flag.Parse()
	if err := run(*machines, *child, *addr, *own, *write); err != nil {
		fmt.Fprintln(os.Stderr, "fabric:", err)
		os.Exit(1)
	}
}

func run(machines int, child, addr, own, write string) error {
	if child != "" {
		return beMachines(find(child), machines, addr)
	}
	if own != "" {
		r, err := measure(find(own), machines)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	results := map[string]map[string]float64{}
	for _, c := range contestants { // each in a process of its own, for its memory
		fmt.Fprintf(os.Stderr, "fabric: %s\n", c.name)
		cmd := exec.Command(os.Args[0], "-own", c.name, "-machines", fmt.Sprint(machines))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		var r map[string]float64
		if err := json.Unmarshal(out, &r); err != nil {
			return err
		}
		if r["binary MiB"], err = binary(c.name); err != nil {
			return err
		}
		results[c.name] = r
	}
	text := table(results, machines)
	fmt.Print(text)
	if write == "" {
		return nil
	}
	return page.Between(write, "fabric", text)
}

func find(name string) contestant {
	i := slices.IndexFunc(contestants, func(c contestant) bool { return c.name == name })
	if i < 0 {
		panic("no contestant " + name)
	}
	return contestants[i]
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("n%03d", i))
	}
	return list
}

// beMachines answers what begins with 'e' with the same, sends floods when told to ('f' and a count of 4 bytes), and ends with its input.
func beMachines(c contestant, n int, addr string) error {
	list := make([]atomic.Pointer[member], n)
	flood := bytes.Repeat([]byte{'x'}, payloadSize)
	for i, name := range names(n) {
		m, err := c.member(name, addr, func(p []byte) {
			self := list[i].Load()
			switch {
			case self == nil || len(p) == 0:
			case p[0] == 'e':
				(*self).up(p)
			case p[0] == 'f':
				go func() {
					for k := range floodEach {
						(*self).up(flood)
						if k%100 == 99 {
							runtime.Gosched()
						}
					}
				}()
			}
		})
		if err != nil {
			return err
		}
		list[i].Store(&m)
	}
	bufio.NewScanner(os.Stdin).Scan()
	return nil
}

const (
	payloadSize = 120 // a Result's size
	floodEach   = 1000
	trips       = 3000
)

// measure is one contestant's row.
func measure(c contestant, n int) (map[string]float64, error) {
	r := map[string]float64{}
	var got atomic.Int64
	answers := make(chan struct{}, 1)
	seen := func(p []byte) {
		if len(p) > 0 && p[0] == 'e' {
			answers <- struct{}{}
			return
		}
		got.Add(1)
	}
	base := resident()
	h, err := c.head(names(n), "", seen)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	kids, err := start(c, n, h.addr())
	if err != nil {
		return nil, err
	}
	if err := await(func() bool { return h.linked() == n }); err != nil {
		return nil, fmt.Errorf("%d of %d are linked: %w", h.linked(), n, err)
	}
	r["all linked s"] = time.Since(began).Seconds()
	time.Sleep(2 * time.Second)
	runtime.GC()
	debug.FreeOSMemory()
	r["head MiB"] = float64(resident()-base) / (1 << 20)

	echo := append([]byte{'e'}, bytes.Repeat([]byte{'x'}, payloadSize-1)...)
	all := names(n)
	list := make([]float64, 0, trips)
	for i := range trips {
		at := time.Now()
		h.to(all[i%n], echo)
		<-answers
		list = append(list, float64(time.Since(at).Microseconds()))
	}
	slices.Sort(list)
	r["trip p50 us"], r["trip p99 us"] = list[len(list)/2], list[len(list)*99/100]

	at := time.Now()
	for _, name := range all {
		h.to(name, []byte{'f'})
	}
	for last, since := int64(0), time.Now(); got.Load() < int64(n*floodEach); time.Sleep(time.Millisecond) {
		if now := got.Load(); now != last {
			last, since = now, time.Now()
		} else if time.Since(since) > 10*time.Second {
			break // the rest was dropped
		}
	}
	r["flood k/s"] = float64(got.Load()) / time.Since(at).Seconds() / 1000
	r["flood lost %"] = 100 * (1 - float64(got.Load())/float64(n*floodEach))

	// A machine that is killed, and one that is stopped.
	for _, how := range []struct {
		name   string
		signal syscall.Signal
	}{{"killed known s", syscall.SIGKILL}, {"stopped known s", syscall.SIGSTOP}} {
		at := time.Now()
		_ = kids.Process.Signal(how.signal)
		if err := await(func() bool { return h.linked() == 0 }); err != nil {
			r[how.name] = -1
		} else {
			r[how.name] = time.Since(at).Seconds()
		}
		_ = kids.Process.Kill()
		_ = kids.Wait()
		if how.signal == syscall.SIGKILL {
			if kids, err = start(c, n, h.addr()); err != nil {
				return nil, err
			}
			if err := await(func() bool { return h.linked() == n }); err != nil {
				return nil, err
			}
		}
	}
	// The head is away for five seconds.
	if kids, err = start(c, n, h.addr()); err != nil {
		return nil, err
	}
	if err := await(func() bool { return h.linked() == n }); err != nil {
		return nil, err
	}
	where := h.addr()
	h.close()
	time.Sleep(5 * time.Second)
	at = time.Now()
	if h, err = c.head(names(n), where, seen); err != nil {
		return nil, err
	}
	if err := await(func() bool { return h.linked() == n }); err != nil {
		return nil, fmt.Errorf("after the head was away %d of %d are linked: %w", h.linked(), n, err)
	}
	r["all back s"] = time.Since(at).Seconds()
	_ = kids.Process.Kill()
	_ = kids.Wait()
	h.close()
	return r, nil
}

func start(c contestant, n int, addr string) (*exec.Cmd, error) {
	kids := exec.Command(os.Args[0], "-child", c.name, "-machines", fmt.Sprint(n), "-addr", addr)
	kids.Stderr = os.Stderr
	if _, err := kids.StdinPipe(); err != nil {
		return nil, err
	}
	return kids, kids.Start()
}

func await(ok func() bool) error {
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not within two minutes")
		}
	}
	return nil
}

// resident is this process's memory in bytes.
func resident() int64 {
	var pages, shared int64
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	_, _ = fmt.Sscan(string(data), &shared, &pages)
	return pages * int64(os.Getpagesize())
}

// binary builds the daemon with what a contestant adds to it, and returns the difference to one without in MiB.
func binary(name string) (float64, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "fabric")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	imports := map[string]string{
		"":       "",
		"stream": "sluice.dev/sluice/internal/edge/fabric/stream",
		"nats":   "github.com/nats-io/nats-server/v2/server github.com/nats-io/nats.go",
	}
	size := func(with string) (int64, error) {
		src := filepath.Join(root, "bench", "fabric", "size")
		if err := os.MkdirAll(src, 0o755); err != nil {
			return 0, err
		}
		defer os.RemoveAll(src)
		// What a binary keeps of a library is what it calls: both start a head.
		text := "package main\nimport (\n\"sluice.dev/sluice/internal/face/cli\"\n\"sluice.dev/sluice/internal/face/cli/daemon\"\n"
		use := ""
		for i, p := range strings.Fields(with) {
			text += fmt.Sprintf("x%d %q\n", i, p)
		}
		switch {
		case strings.Contains(with, "nats"):
			use = "s, _ := x0.NewServer(&x0.Options{}); go s.Start(); c, _ := x1.Connect(\"\", x1.InProcessServer(s)); _ = c\n"
		case with != "":
			use = "h := x0.NewHead(x0.HeadOptions{}); _, k := h.Handler(nil); _ = k; m := x0.Join(x0.MemberOptions{}); _ = m\n"
		}
		text += ")\nfunc main() {\n" + use + "_, _ = cli.Main(cli.Deps{Open: daemon.Open}), 0\n}\n"
		if err := os.WriteFile(filepath.Join(src, "main.go"), []byte(text), 0o644); err != nil {
			return 0, err
		}
		out := filepath.Join(dir, "size")
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./size")
		cmd.Dir = filepath.Join(root, "bench", "fabric")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false")
		if said, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build with %q: %w\n%s", with, err, said)
		}
		info, err := os.Stat(out)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	without, err := size("")
	if err != nil {
		return 0, err
	}
	with, err := size(imports[name])
	return float64(with-without) / (1 << 20), err
}
