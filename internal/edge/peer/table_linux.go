package peer

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// fromTable looks for the owner of the other end in the kernel's tables as text: slower than asking, and there where asking
// is not allowed. A socket of IPv6 can speak IPv4.
func fromTable(e ends) (uint32, error) {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue // without IPv6 there is one only
		}
		uid, err := scan(f, e)
		_ = f.Close()
		if err == nil {
			return uid, nil
		}
	}
	return 0, errUnnamed
}

// scan reads one table.
func scan(r io.Reader, e ends) (uint32, error) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 10 || f[3] != fmt.Sprintf("%02X", tcpEstablished) || f[9] == "0" {
			continue
		}
		if there, err := parse(f[1]); err != nil || there != e.there {
			continue
		}
		if here, err := parse(f[2]); err != nil || here != e.here {
			continue
		}
		uid, err := strconv.ParseUint(f[7], 10, 32)
		return uint32(uid), err
	}
	return 0, errUnnamed
}

// parse reads an address of the table: words of four bytes in the machine's order, in hex, and a port.
func parse(text string) (netip.AddrPort, error) {
	ip, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(ip)
	if err != nil {
		return netip.AddrPort{}, err
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if len(raw)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("an address of %d bytes", len(raw))
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	a, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("an address of %d bytes", len(raw))
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), nil
}
