package vm

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// kernelVar names the kernel image to boot.
const kernelVar = "SLUICE_VM_KERNEL"

// stormsVar says how often memory runs out in TestGuestOutlivesStorms, for who wants to measure.
const stormsVar = "SLUICE_VM_STORMS"

// swapBytes is the size of the guest's disk.
const swapBytes = 256 << 20

// verdict is the line the guest ends with. The emulator's exit status says nothing.
const verdict = "guest tests: "

func TestInVM(t *testing.T) {
	const emulator = "qemu-system-x86_64"
	kernel := os.Getenv(kernelVar)
	switch {
	case kernel == "":
		t.Skip(kernelVar + " names no kernel image to boot; make vmtest gets one")
	case runtime.GOARCH != "amd64":
		t.Skip("the guest is this program, and the emulator is that of x86-64")
	}
	if _, err := exec.LookPath(emulator); err != nil {
		t.Skipf("%v; it is in the package qemu-system-x86", err)
	}
	image := filepath.Join(t.TempDir(), "image.gz")
	if err := pack(image); err != nil {
		t.Fatal(err)
	}
	// An empty disk, which the guest uses as swap where a test wants some.
	blank := filepath.Join(t.TempDir(), "swap")
	if err := os.WriteFile(blank, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(blank, swapBytes); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 570*time.Second)
	defer cancel()
	// Plain emulation: it works everywhere, and these tests wait more than they compute.
	cmd := exec.CommandContext(ctx, emulator, "-accel", "tcg", "-machine", "q35", "-cpu", "max", "-smp", "2", "-m", "512M",
		"-drive", "if=none,id=swap,format=raw,cache=unsafe,file="+blank, "-device", "nvme,serial=swap,drive=swap",
		"-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-kernel", kernel, "-initrd", image,
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init "+stormsVar+"="+os.Getenv(stormsVar)+
			" -- -test.v -test.run=TestGuest -test.timeout=540s")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := "nothing: it did not come to the end"
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := strings.TrimRight(lines.Text(), "\r")
		t.Log(line)
		if rest, ok := strings.CutPrefix(line, verdict); ok {
			said = rest
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the emulator: %v", err)
	}
	if said != "passed" {
		t.Errorf("the guest says: %s", said)
	}
}

// pack writes a file system image in which this program is /init, in the form the kernel unpacks at boot: cpio, "newc".
func pack(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	if bytes.Contains(program, []byte("/lib64/ld-linux")) {
		return fmt.Errorf("%s needs a C library, and the guest has none: run the tests with CGO_ENABLED=0", self)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	const directory, file = 0o040755, 0o100755
	inode := 0
	entry := func(name string, mode int, data []byte) {
		inode++
		header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0,
			len(name)+1, 0)
		padded(z, append([]byte(header), name+"\x00"...))
		padded(z, data)
	}
	for _, d := range []string{"proc", "sys", "dev", "tmp"} {
		entry(d, directory, nil)
	}
	entry("init", file, program)
	inode = -1
	entry("TRAILER!!!", 0, nil)
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}

// padded writes data and zeroes up to a multiple of four bytes. Errors come again at the writer's Close.
func padded(w io.Writer, data []byte) {
	_, _ = w.Write(data)
	_, _ = w.Write(make([]byte, -len(data)&3))
}
