package process_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/executor/executortest"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
	"sluice.dev/sluice/internal/edge/executor/shim/durable/power"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
	"sluice.dev/sluice/internal/edge/survival/watch"
)

// TestMain lets the test binary stand in for the supervisor, and for the programs that subjobs run.
func TestMain(m *testing.M) {
	durable.OnSync = func(f *os.File) { power.Record(f); linger(f) }
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervisor.Await, supervisor.Supervise, supervisor.Probe, adapter.Verb:
			os.Exit(supervisor.Main(os.Args[1:]))
		case watch.Verb:
			os.Exit(watch.Main(os.Args[2:], stagedFor(os.Args[2])))
		case "daemon":
			daemonOf(os.Args[2:])
		case "resident":
			daemonOfResident(os.Args[2])
		case "program":
			program(os.Args[2:])
		}
	}
	done := executortest.LeaveTmp()
	// The tests wait for processes more than they work.
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	done()
	os.Exit(code)
}

// lingers is a file whose sync waits until the file is there that it names: how long storing takes on a slow disk.
const lingers = "lingers"

func linger(f *os.File) {
	at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	must(err)
	if filepath.Base(at) != lingers {
		return
	}
	until, err := os.ReadFile(at)
	must(err)
	for {
		if _, err := os.Stat(string(until)); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// kept is what must not be collected.
var kept [][]byte

// program is what subjobs of these tests run.
func program(args []string) {
	term := make(chan os.Signal, 4)
	switch args[0] {
	case "polite": // half of the range at once, the rest never; yields when asked to
		signal.Notify(term, syscall.SIGTERM)
		progress(5, false)
		<-term
		os.Exit(85)
	case "hogs": // has 32 MiB, then as what follows, or as polite
		data := make([]byte, 32<<20)
		for i := 0; i < len(data); i += 4096 {
			data[i] = 1
		}
		kept = append(kept, data)
		program(append(args[1:len(args):len(args)], "polite"))
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		progress(5, false)
		time.Sleep(time.Hour)
	case "hog": // takes so many MiB
		n, _ := strconv.Atoi(args[1])
		data := make([]byte, n<<20)
		for i := 0; i < len(data); i += 4096 {
			data[i] = 1
		}
		time.Sleep(time.Hour)
	case "map": // has a file of so many MiB in its memory, for a moment
		n, _ := strconv.Atoi(args[2])
		f, err := os.Create(args[1])
		must(err)
		must(f.Truncate(int64(n) << 20))
		data, err := syscall.Mmap(int(f.Fd()), 0, n<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		must(err)
		for i := 0; i < len(data); i += 4096 {
			data[i] = 1
		}
		time.Sleep(time.Second)
		os.Exit(0)
	case "grow": // takes so many MiB every second, up to 1 GiB
		n, _ := strconv.Atoi(args[1])
		for range 1024 {
			data := make([]byte, 1<<20)
			for i := 0; i < len(data); i += 4096 {
				data[i] = 1
			}
			kept = append(kept, data)
			time.Sleep(time.Second / time.Duration(n))
		}
		os.Exit(len(kept) & 1)
	case "attribute": // gives a file an attribute of its own, or removes it
		if len(args) > 2 {
			must(syscall.Removexattr(args[1], "user.x"))
		} else {
			must(syscall.Setxattr(args[1], "user.x", []byte("1"), 0))
		}
		os.Exit(0)
	case "steps": // leaves a checkpoint at the unit given and exits with the code given
		dir := os.Getenv("SLUICE_CHECKPOINT_DIR")
		if args[1] != "0" {
			must(os.WriteFile(filepath.Join(dir, "state"), []byte(args[1]), 0o600))
			n, _ := strconv.ParseInt(args[1], 10, 64)
			progress(n, true)
		}
		code, _ := strconv.Atoi(args[2])
		os.Exit(code)
	}
	os.Exit(1)
}

// progress replaces the progress file as the contract asks.
func progress(n int64, checkpoint bool) {
	path := os.Getenv("SLUICE_PROGRESS_FILE")
	data, err := json.Marshal(map[string]any{"progress": n, "checkpoint": checkpoint})
	must(err)
	must(os.WriteFile(path+".new", data, 0o600))
	must(os.Rename(path+".new", path))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
