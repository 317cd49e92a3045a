// Package soak kills Sluice at random moments, hundreds of times, and then asks an oracle that never reads Sluice's own
// journal whether its promises held: every job finished, each unit of work was published exactly once and rightly, no two
// subjobs were ever alive on a slice at once, and none outlived its lease. It lives outside the wings: it only starts
// the programs and looks at what anybody could see.
package soak

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// workerVariable makes the test binary a subjob's program.
const workerVariable = "SOAK_WORKER"

// value is what unit i of a job must have published.
func value(name string, i int64) string {
	sum := sha256.Sum256([]byte(name + "/" + strconv.FormatInt(i, 10)))
	return hex.EncodeToString(sum[:8])
}

// chain is the state of a steps job after step i: each step needs the one before.
func chain(state [32]byte, i int64) [32]byte {
	return sha256.Sum256(binary.LittleEndian.AppendUint64(state[:], uint64(i)))
}

type env struct {
	name, output, progress, checkpoint, resume string
	from, to                                   int64
	pace                                       time.Duration
}

func environment() env {
	n := func(k string) int64 {
		v, err := strconv.ParseInt(os.Getenv(k), 10, 64)
		if err != nil {
			fail("%s: %v", k, err)
		}
		return v
	}
	pace, err := time.ParseDuration(os.Getenv("SOAK_PACE"))
	if err != nil {
		fail("SOAK_PACE: %v", err)
	}
	return env{
		name: os.Getenv("SLUICE_JOB"), output: os.Getenv("SLUICE_OUTPUT_DIR"), progress: os.Getenv("SLUICE_PROGRESS_FILE"),
		checkpoint: os.Getenv("SLUICE_CHECKPOINT_DIR"), resume: os.Getenv("SLUICE_RESUME_DIR"), from: n("SLUICE_FROM"), to: n("SLUICE_TO"),
		pace: pace,
	}
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(3)
}

// work is the program of every subjob in the soak. It leaves a child in a session of its own, as careless programs do:
// the supervisor has to end that too.
func work(kind string) {
	switch kind {
	case "linger":
		time.Sleep(time.Hour)
		return
	case "storm":
		blow()
	}
	linger := exec.Command("/proc/self/exe")
	linger.Env = append(os.Environ(), workerVariable+"=linger")
	linger.SysProcAttr = newSession()
	if err := linger.Start(); err != nil {
		fail("start a child: %v", err)
	}
	e := environment()
	switch kind {
	case "items", "late":
		items(e)
	case "steps":
		steps(e)
	case "rigid":
		time.Sleep(e.pace)
		publish(filepath.Join(e.output, "units"), fmt.Appendf(nil, "0 %s\n", value(e.name, 0)))
	default:
		fail("%s=%q is no kind of work", workerVariable, kind)
	}
}

// held is what a worker has taken where storms blow, at most mostHeld.
var held [][]byte

const mostHeld = 256

// grow takes 128 KiB more.
func grow() {
	if os.Getenv("SOAK_GROW") == "" || len(held) == mostHeld {
		return
	}
	more := make([]byte, 128<<10)
	for i := 0; i < len(more); i += 4096 {
		more[i] = 1
	}
	held = append(held, more)
}

// items publishes the value of each unit, in order, and says how far it is every tenth.
func items(e env) {
	var buf bytes.Buffer
	for i := e.from; i < e.to; i++ {
		time.Sleep(e.pace)
		grow()
		fmt.Fprintf(&buf, "%d %s\n", i, value(e.name, i))
		if done := i + 1; done%10 == 0 || done == e.to {
			publish(filepath.Join(e.output, "units"), buf.Bytes())
			time.Sleep(e.pace) // ended here, it has published what does not count
			report(e, done, false)
		}
	}
}

// steps continues a chain from its checkpoint and leaves one every tenth step, under a name of its own: ended between a
// checkpoint and the report of it, the checkpoint that was reported must still be there.
func steps(e env) {
	var state [32]byte
	if e.from > 0 {
		data, err := os.ReadFile(filepath.Join(e.resume, fmt.Sprintf("state-%d", e.from)))
		if err != nil || len(data) != 40 {
			fail("resume from %d: %v, %d bytes", e.from, err, len(data))
		}
		if at := int64(binary.LittleEndian.Uint64(data[32:])); at != e.from {
			fail("the checkpoint is of step %d, the piece starts at %d", at, e.from)
		}
		copy(state[:], data)
	}
	var buf bytes.Buffer
	for i := e.from; i < e.to; i++ {
		time.Sleep(e.pace)
		grow()
		state = chain(state, i)
		fmt.Fprintf(&buf, "%d %s\n", i, hex.EncodeToString(state[:8]))
		if done := i + 1; done%10 == 0 || done == e.to {
			publish(filepath.Join(e.output, "units"), buf.Bytes())
			time.Sleep(e.pace)
			publish(filepath.Join(e.checkpoint, fmt.Sprintf("state-%d", done)), binary.LittleEndian.AppendUint64(state[:], uint64(done)))
			report(e, done, true)
		}
	}
}

func report(e env, done int64, checkpoint bool) {
	data, err := json.Marshal(map[string]any{"progress": done, "checkpoint": checkpoint})
	if err != nil {
		fail("%v", err)
	}
	publish(e.progress, data)
}

// publish replaces a file whole.
func publish(path string, data []byte) {
	if err := os.WriteFile(path+".tmp", data, 0o644); err != nil {
		fail("%v", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		fail("%v", err)
	}
}
