package peer

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary stand in for another user's client: it connects, says which port it has, and stays until its
// input ends. A client that leaves says so once it has.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "client" {
		if err := client(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func client(network, addr, how string) error {
	var d net.Dialer
	if network == "mapped" { // IPv4, spoken by a socket of IPv6
		return mapped(addr)
	}
	c, err := d.Dial(network, addr)
	if err != nil {
		return err
	}
	fmt.Println(c.LocalAddr())
	switch how {
	case "leave":
		_, _ = io.WriteString(c, "something to read")
		err = c.Close()
	case "reset":
		_, _ = io.WriteString(c, "something to read")
		_ = c.(*net.TCPConn).SetLinger(0)
		err = c.Close()
	}
	if how != "stay" {
		fmt.Println("gone")
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return err
}

func mapped(addr string) error {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	sa := &unix.SockaddrInet6{Port: a.Port}
	copy(sa.Addr[:], a.IP.To16())
	if err := unix.Connect(fd, sa); err != nil {
		return err
	}
	fmt.Println("connected")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}
