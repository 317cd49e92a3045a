package peer

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const nobody = 65534

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// me is this program where every user can run it, in a folder that every user can write to.
func me(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; strings.HasPrefix(at, os.TempDir()+"/"); at = filepath.Dir(at) {
		check(t, os.Chmod(at, 0o777))
	}
	from, err := os.Open("/proc/self/exe")
	check(t, err)
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, "me"), os.O_WRONLY|os.O_CREATE, 0o755)
	check(t, err)
	_, err = io.Copy(to, from)
	check(t, err)
	check(t, to.Close())
	return to.Name()
}

// connect lets another user's process connect to l, and returns this end and the lines that the process says.
func connect(t *testing.T, l net.Listener, program string, uid uint32, network, how string) (net.Conn, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(program, "client", network, l.Addr().String(), how)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	cmd.Stderr = os.Stderr
	check(t, cmd.Start())
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	c, err := l.Accept()
	check(t, err)
	t.Cleanup(func() { c.Close() })
	said := bufio.NewReader(out)
	_, err = said.ReadString('\n')
	check(t, err)
	return c, said
}

func listen(t *testing.T, network, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil && strings.Contains(addr, "::1") {
		t.Skipf("skipped: no IPv6 here: %v", err)
	}
	check(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func TestEveryPeerIsNamed(t *testing.T) {
	program := me(t)
	users := []uint32{uint32(os.Geteuid())}
	if os.Geteuid() == 0 {
		users = []uint32{0, 1, nobody}
	}
	for _, c := range []struct{ name, network, addr, dial string }{
		{"IPv4", "tcp", "127.0.0.1:0", "tcp"},
		{"another loopback address", "tcp", "127.9.8.7:0", "tcp"},
		{"IPv6", "tcp", "[::1]:0", "tcp"},
		{"IPv4 by a socket of IPv6", "tcp", "127.0.0.1:0", "mapped"},
		{"unix", "unix", filepath.Join(filepath.Dir(program), "s"), "unix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listen(t, c.network, c.addr)
			if c.network == "unix" {
				check(t, os.Chmod(c.addr, 0o777))
			}
			var n Namer
			defer n.Close()
			for _, uid := range users {
				conn, _ := connect(t, l, program, uid, c.dial, "stay")
				if got, err := n.UID(conn); err != nil || got != uid {
					t.Errorf("user %d is called %d, %v", uid, got, err)
				}
				if c.network == "unix" {
					continue
				}
				e := ends{plain(conn.LocalAddr()), plain(conn.RemoteAddr())}
				if got, err := fromTable(e); err != nil || got != uid {
					t.Errorf("user %d is called %d, %v by the table", uid, got, err)
				}
			}
		})
	}
}

// TestWhoHasLeftIsNobody: the kernel forgets the owner of a closed socket and calls it root's.
func TestWhoHasLeftIsNobody(t *testing.T) {
	program := me(t)
	l := listen(t, "tcp", "127.0.0.1:0")
	var n Namer
	defer n.Close()
	for _, how := range []string{"leave", "reset"} {
		c, said := connect(t, l, program, nobody, "tcp", how)
		_, err := said.ReadString('\n')
		check(t, err)
		if uid, err := n.UID(c); err == nil {
			t.Errorf("%s: named %d", how, uid)
		}
		e := ends{plain(c.LocalAddr()), plain(c.RemoteAddr())}
		if uid, err := n.kernel.owner(e); err == nil {
			t.Errorf("%s: the kernel is believed that it was %d", how, uid)
		}
		if uid, err := fromTable(e); err == nil {
			t.Errorf("%s: the table is believed that it was %d", how, uid)
		}
	}
}

// TestAPortThatIsUsedAgain: somebody sends a request, resets the connection, and the daemon's own user happens to get the port:
// by its addresses the first connection is now that of the second.
func TestAPortThatIsUsedAgain(t *testing.T) {
	program := me(t)
	l := listen(t, "tcp", "127.0.0.1:0")
	var n Namer
	defer n.Close()
	var first, mine net.Conn
	for err := error(unix.EADDRINUSE); errors.Is(err, unix.EADDRINUSE); { // another program can have got the port meanwhile
		var said *bufio.Reader
		first, said = connect(t, l, program, nobody, "tcp", "reset")
		_, err = said.ReadString('\n')
		check(t, err)
		d := net.Dialer{LocalAddr: first.RemoteAddr(), Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
		}}
		if mine, err = d.Dial("tcp", l.Addr().String()); !errors.Is(err, unix.EADDRINUSE) {
			check(t, err)
		}
	}
	defer mine.Close()
	second, err := l.Accept()
	check(t, err)
	defer second.Close()
	if uid, err := n.UID(second); err != nil || uid != uint32(os.Geteuid()) {
		t.Errorf("the second is called %d, %v", uid, err)
	}
	if uid, err := n.UID(first); err == nil {
		t.Errorf("the first is taken for the second, user %d", uid)
	}
}

func TestWhoIsFarIsNobody(t *testing.T) {
	var n Namer
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := n.UID(a); !errors.Is(err, ErrFar) {
		t.Errorf("a pipe: %v", err)
	}
	for _, addr := range interfaces(t) {
		l := listen(t, "tcp", net.JoinHostPort(addr, "0"))
		c, err := net.DialTimeout("tcp", l.Addr().String(), 10*time.Second)
		check(t, err)
		s, err := l.Accept()
		check(t, err)
		if _, err := n.UID(s); !errors.Is(err, ErrFar) {
			t.Errorf("%s: %v", addr, err)
		}
		c.Close()
		s.Close()
	}
}

// interfaces are this machine's addresses of IPv4 that others could reach.
func interfaces(t *testing.T) (list []string) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	check(t, err)
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			list = append(list, p.Addr().String())
		}
	}
	return list
}

// TestAnswersAreRead: only an open socket with just these addresses is taken.
func TestAnswersAreRead(t *testing.T) {
	e := ends{netip.MustParseAddrPort("127.0.0.1:7117"), netip.MustParseAddrPort("127.0.0.1:40000")}
	table := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	row := func(line string) string { return table + line + "\n" }
	good := "   0: 0100007F:9C40 0100007F:1BCD 01 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 20 4 30 10 -1"
	if uid, err := scan(strings.NewReader(row(good)), e); err != nil || uid != 1000 {
		t.Errorf("%d, %v", uid, err)
	}
	if uid, err := scan(strings.NewReader(row(strings.NewReplacer("0100007F:9C40", "0000000000000000FFFF00000100007F:9C40", "0100007F:1BCD",
		"0000000000000000FFFF00000100007F:1BCD").Replace(good))), e); err != nil || uid != 1000 {
		t.Errorf("in the form of IPv6: %d, %v", uid, err)
	}
	for name, change := range map[string][2]string{
		"closing": {" 01 ", " 04 "}, "no owner": {" 77 ", " 0 "}, "another port": {"9C40", "9C41"}, "this end": {"1BCD", "1BCE"},
		"cut": {" 77 1 0 20 4 30 10 -1", ""},
	} {
		if uid, err := scan(strings.NewReader(row(strings.Replace(good, change[0], change[1], 1))), e); err == nil {
			t.Errorf("%s: %d", name, uid)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, 8), make([]byte, header), make([]byte, header+8)} {
		if uid, err := answer(b, e, 0); err == nil {
			t.Errorf("%d bytes: %d", len(b), uid)
		}
	}
}
