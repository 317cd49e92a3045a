package session

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/host/datadir"
)

// socket is the path of the unix socket that --server names, if it names one.
func (a *Session) socket() (path string, ok bool) { return strings.CutPrefix(a.server, "unix:") }

func dialSocket(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		at, free, err := api.SocketAddress(path)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: "unix", Err: err}
		}
		defer free()
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", at)
	}
}

// tokenBeside is the token of the daemon whose socket lies at path, if it can be read: root, who is not the daemon's user,
// needs it. It must be a token, in a file of the socket's owner, or a link there could have us send any file. It is
// never looked for by itself for an address: any user can listen there, and would be told it.
func tokenBeside(path string) string {
	socket, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), datadir.TokenFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || !ownedAlike(info, socket) {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, 65))
	if secret, bad := hex.DecodeString(string(text)); err != nil || bad != nil || len(secret) != 32 {
		return ""
	}
	return string(text)
}

func ownedAlike(a, b os.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return ok && also && x.Uid == y.Uid
}
