package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/s3"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

// gatewayVersion of the server that tests run against: a real one, over a file system.
const gatewayVersion = "v1.8.0"

const (
	bucket = "bucket"
	access = "access"
	secret = "a-secret-of-tests"
)

// gateway is where `make versitygw` puts the server.
func gateway(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../../../../.tmp/bin/versitygw-" + gatewayVersion)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("skipped: the server is not built; `make versitygw` builds it (a minute, with a network), and CI does")
	}
	return path
}

// server is a running one, on a socket.
type server struct {
	socket, dir string
	// sent counts the bytes of contents, fault is how requests that change something fail.
	sent  atomic.Int64
	mu    sync.Mutex
	fault storetest.Fault
	// broken: the body of the next object that is read ends after so many bytes.
	broken int64
}

func serve(t testing.TB) *server {
	t.Helper()
	program := gateway(t)
	dir, err := os.MkdirTemp("", "vgw") //nolint:usetesting // a socket's path may not be as long as a test's name makes it
	if err != nil {
		t.Fatal(err)
	}
	s := &server{socket: filepath.Join(dir, "socket"), dir: filepath.Join(dir, "data")}
	if err := os.MkdirAll(filepath.Join(s.dir, bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--quiet", "--port", s.socket, "posix", s.dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+access, "ROOT_SECRET_KEY="+secret)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		_ = os.RemoveAll(dir)
	})
	for range 400 {
		if c, err := net.Dial("unix", s.socket); err == nil {
			_ = c.Close()
			return s
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the server does not answer; it says %s", &said)
	return nil
}

// options of a store in it, whose requests go through the server's RoundTrip. It tries three times: where a list meets a removal beside it,
// this server answers 500.
func (s *server) options(transport http.RoundTripper) s3.Options {
	return s3.Options{Endpoint: "http://gateway:80", Bucket: bucket, Prefix: "some/prefix", Region: "us-east-1",
		Access: access, Secret: secret, PartSize: 5 << 20, AtOnce: 1, Retries: 3, Transport: transport}
}

func overSocket(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
}

// failing counts and fails requests on their way to the server.
type failing struct {
	*server
	next http.RoundTripper
}

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	fault, broken := f.fault, f.broken
	if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/objects/") {
		f.broken = 0
	} else {
		broken = 0
	}
	f.mu.Unlock()
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/objects/") {
		f.sent.Add(r.ContentLength)
	}
	if changes := r.Method == http.MethodPut || r.Method == http.MethodPost; changes && fault != storetest.Works {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		switch fault {
		case storetest.Full:
			return answer(r, http.StatusInsufficientStorage, "InsufficientStorage"), nil
		case storetest.Forbidden:
			return answer(r, http.StatusForbidden, "AccessDenied"), nil
		default: // Unreachable
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: unix.ECONNREFUSED}
		}
	}
	resp, err := f.next.RoundTrip(r)
	if err == nil && broken > 0 {
		resp.Body = cut{io.LimitReader(resp.Body, broken), resp.Body}
	}
	return resp, err
}

// cut is a body whose connection breaks.
type cut struct {
	io.Reader
	io.Closer
}

func (c cut) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func answer(r *http.Request, status int, code string) *http.Response {
	text := fmt.Sprintf("<Error><Code>%s</Code><Message>as the test wants it</Message></Error>", code)
	return &http.Response{StatusCode: status, Status: code, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(text)),
		ContentLength: int64(len(text)), Request: r}
}

// file of an object, or of what was said of it, at the server.
func (s *server) file(kind string, d store.Digest) string {
	return filepath.Join(s.dir, bucket, "some", "prefix", kind, string(d))
}

// place is a store in a bucket of its own server.
func place(t testing.TB) *storetest.Place {
	s := serve(t)
	return &storetest.Place{
		Open: func() (store.Store, error) {
			return s3.Open(t.Context(), s.options(failing{s, overSocket(s.socket)}))
		},
		Age: func(d store.Digest, by time.Duration) {
			at := time.Now().Add(-by)
			for _, kind := range []string{"objects", "renewed"} {
				if err := os.Chtimes(s.file(kind, d), at, at); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			}
		},
		Damage: func(d store.Digest) {
			f, err := os.OpenFile(s.file("objects", d), os.O_RDWR, 0)
			if err == nil {
				_, err = f.WriteAt([]byte("damage"), 1000)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		Sent: s.sent.Load,
		Part: 5 << 20,
		Fail: func(fault storetest.Fault) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fault = fault
		},
		Spec: s.socket,
	}
}

func TestMain(m *testing.M) {
	storetest.Child(func(socket string) (store.Store, error) {
		return s3.Open(context.Background(), (&server{}).options(overSocket(socket)))
	})
	os.Exit(m.Run())
}
