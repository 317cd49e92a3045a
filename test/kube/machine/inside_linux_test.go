//go:build kubernetes && machine

package machine

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/test/kube/plane"
)

// inside names, in the environment, the folder of the machine whose first process this is.
const inside = "SLUICE_TEST_MACHINE"

// nodeIP is the machine's own address, bridge that of its side of the Pods' network.
const (
	nodeIP  = "10.97.0.1"
	podCIDR = "10.98.0.0/24"
	gateway = "10.98.0.1"
)

// kernel are the settings that a kubelet writes. It gets copies.
var kernel = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
	"kernel/keys/root_maxbytes"}

// first is the first process of a machine: it prepares the namespaces that it was started in, says so on its standard output, and buries
// what is orphaned until it is killed.
func first(dir string) int {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	err := errors.Join(mounts(dir), network())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	for range children {
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
	return 0
}

// mounts makes what is mounted this machine's own: its processes, the folders that its programs have fixed places in, and the copies of
// the kernel's settings.
func mounts(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, path := range kernel {
		copied := filepath.Join(dir, "kernel", strings.ReplaceAll(path, "/", "."))
		data, err := os.ReadFile("/proc/sys/" + path)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(copied), 0o755)
		}
		if err == nil {
			err = os.WriteFile(copied, data, 0o600)
		}
		if err == nil {
			err = unix.Mount(copied, "/proc/sys/"+path, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("a copy of %s: %w", path, err)
		}
	}
	for _, path := range []string{"/run", "/var/lib", "/var/log", "/opt"} {
		if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("a %s of its own: %w", path, err)
		}
	}
	return nil
}

// network brings up the loopback, with the addresses that the machine and the API server have there.
func network() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
		return fmt.Errorf("bringing up lo: %w", err)
	}
	for i, ip := range []string{nodeIP, plane.ServiceIP} {
		alias, err := unix.NewIfreq(fmt.Sprintf("lo:%d", i+1))
		for _, set := range []struct {
			call uint
			ip   netip.Addr
		}{{unix.SIOCSIFADDR, netip.MustParseAddr(ip)}, {unix.SIOCSIFNETMASK, netip.MustParseAddr("255.255.255.255")}} {
			if err == nil {
				err = alias.SetInet4Addr(set.ip.AsSlice())
			}
			if err == nil {
				err = unix.IoctlIfreq(s, set.call, alias)
			}
		}
		if err != nil {
			return fmt.Errorf("address %s: %w", ip, err)
		}
	}
	return nil
}

// copied hands on what two connections say, until both are done.
func copied(a, b io.ReadWriteCloser) {
	done := make(chan struct{}, 2)
	for _, way := range [][2]io.ReadWriteCloser{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			done <- struct{}{}
		}()
	}
	<-done
	<-done
	_ = a.Close()
	_ = b.Close()
}
