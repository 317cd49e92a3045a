package session

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestAnAddressThatComesIsWaitedFor: the same for a daemon that is named by its address. A port can't be kept free for it, so
// it is the test itself that refuses.
func TestAnAddressThatComesIsWaitedFor(t *testing.T) {
	tries := 0
	connect := patiently(time.Minute, func(context.Context, string, string) (net.Conn, error) {
		if tries++; tries < 4 {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		one, _ := net.Pipe()
		return one, nil
	})
	if c, err := connect(t.Context(), "tcp", "127.0.0.1:1"); c == nil || err != nil || tries != 4 {
		t.Errorf("%d tries: %v", tries, err)
	}
	tries = 0
	for patience, want := range map[time.Duration]error{-1: syscall.ECONNREFUSED, time.Minute: syscall.EACCES} {
		_, err := patiently(patience, func(context.Context, string, string) (net.Conn, error) {
			tries++
			return nil, &net.OpError{Op: "dial", Err: want}
		})(t.Context(), "tcp", "127.0.0.1:1")
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if tries != 2 {
		t.Errorf("%d tries without patience, or where it is of no use", tries)
	}
}
