package restd

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// maxSocket is how long the path of a socket may be, in bytes.
const maxSocket = 107

// Options of a client. URL is needed.
type Options struct {
	// URL is unix:/path of a socket, https://host[:port][/path], or http:// of this machine itself.
	URL string
	// User and TokenFile say who asks, where the socket does not: a JWT in a file that nobody else can read. It expires, and so is read for
	// each call.
	User, TokenFile string
	// Version is the only one that is used; empty: the newest that is there.
	Version string
	// Timeout of each call.
	Timeout time.Duration
	// Roots are whom certificates are signed by; nil: those of the system.
	Roots *x509.CertPool
}

// Check lists what is wrong with options.
func (o *Options) Check() error {
	var errs []error
	if _, _, err := place(o.URL); err != nil {
		errs = append(errs, err)
	}
	if o.Version != "" && !slices.Contains(Versions(), o.Version) {
		errs = append(errs, fmt.Errorf("version %q: want one of %s, or none, and the newest that is there is taken", o.Version,
			strings.Join(Versions(), ", ")))
	}
	if o.TokenFile == "" && !strings.HasPrefix(o.URL, "unix:") {
		errs = append(errs, errors.New("tokenFile: only a socket says who asks; want a file with a JWT, as scontrol token prints it"))
	}
	if o.TokenFile != "" && o.User == "" {
		errs = append(errs, errors.New("user: want whose token it is"))
	}
	return errors.Join(errs...)
}

// place is the socket's path, or the beginning of each URL.
func place(text string) (socket, base string, err error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path = "/" + strings.TrimLeft(path, "/")
		if path == "/" || strings.ContainsAny(text, "\x00\r\n") || strings.HasPrefix(text, "unix:.") {
			return "", "", fmt.Errorf("url %q: want the path of a socket from the root, such as unix:/run/slurmrestd.sock", text)
		}
		if len(path) > maxSocket {
			return "", "", fmt.Errorf("url %q: the path of a socket has at most %d bytes, and this has %d", text, maxSocket, len(path))
		}
		return path, "http://slurmrestd", nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "", "", fmt.Errorf("url %q: want https://HOST[:PORT] or unix:/PATH", text)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", "", errors.New("url: want neither a user, a query nor a fragment in it; who asks is said by user and tokenFile")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", "", fmt.Errorf("url %q: everybody on the way could read tokens; want https:// but for this machine itself", text)
	}
	return "", strings.TrimRight(u.String(), "/"), nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// maxToken is the longest token that is read, in bytes.
const maxToken = 64 << 10

// token is the JWT of the file, also as `scontrol token` prints it. Errors: Denied: there is none, or others may read it.
func (o *Options) token() (string, error) {
	info, err := os.Stat(o.TokenFile)
	if err != nil {
		return "", errkind.Errorf(errkind.Denied, "rest: tokenFile: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return "", errkind.Errorf(errkind.Denied, "rest: tokenFile: %s is no file", o.TokenFile)
	case info.Mode().Perm()&0o077 != 0 || ok && int(owner.Uid) != os.Geteuid():
		return "", errkind.Errorf(errkind.Denied, "rest: tokenFile: %s is open to others (%v), who could ask Slurm as you: chmod 600 it, "+
			"and let it be yours", o.TokenFile, info.Mode())
	case info.Size() > maxToken:
		return "", errkind.Errorf(errkind.Denied, "rest: tokenFile: %s is longer than a token", o.TokenFile)
	}
	text, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return "", errkind.Errorf(errkind.Denied, "rest: tokenFile: %w", err)
	}
	token := strings.TrimPrefix(strings.TrimSpace(string(text)), "SLURM_JWT=")
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errkind.Errorf(errkind.Denied, "rest: tokenFile: %s holds no token: want what scontrol token prints", o.TokenFile)
	}
	return token, nil
}
