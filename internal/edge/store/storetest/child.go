package storetest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"sluice.dev/sluice/internal/edge/store"
)

// Child is for TestMain: in a child process it uploads to the store that open opens by its spec, and does not return.
func Child(open func(spec string) (store.Store, error)) {
	text := os.Getenv(spec)
	if text == "" {
		return
	}
	s, err := open(text)
	if err == nil {
		data := content(7, killSize)
		_, err = s.Put(context.Background(), digestOf(data), stopping{bytes.NewReader(data)})
	}
	fmt.Println("ended by itself:", err)
	os.Exit(1)
}

// stopping is a source that says so at a byte and waits there for its end.
type stopping struct{ *bytes.Reader }

func (s stopping) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > killAt {
		fmt.Println("there")
		select {}
	}
	return s.Reader.ReadAt(p, off)
}

// killed: an upload whose process is killed has left nothing visible, and the next one resumes it.
func killed(d *desk) {
	self, err := os.Executable()
	d.ok(err)
	child := exec.Command(self, "-test.run=^$")
	child.Env = append(os.Environ(), spec+"="+d.Spec)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	d.ok(err)
	d.ok(child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	killed := child.Process.Kill()
	_ = child.Wait() // it was killed
	if strings.TrimSpace(line) != "there" || err != nil || killed != nil {
		d.Fatalf("the child said %q: %v, %v", line, err, killed)
	}
	data := content(7, killSize)
	d.unseen(digestOf(data))
	sent := d.Sent()
	_, err = d.s.Put(d.Context(), digestOf(data), bytes.NewReader(data))
	d.ok(err)
	d.holds(data)
	if again := d.Sent() - sent; again > killSize-killAt+d.Part {
		d.Errorf("%d bytes were sent once more, of %d that were missing", again, killSize-killAt)
	}
}

// spec is the variable that makes a test binary the child that is killed while it uploads.
const spec = "SLUICE_STORETEST_SPEC"

// killSize is what the child puts, killAt where it stops until it is killed.
const (
	killSize = 20 << 20
	killAt   = 17 << 20
)
