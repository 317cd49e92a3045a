//go:build kubernetes

package bucket

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store/s3"
	"sluice.dev/sluice/test/kube/plane"
)

// The one account of the server, and its bucket.
const (
	access = "access"
	secret = "a-secret-of-tests"
	name   = "bucket"
)

// Server is an S3 server that keeps a bucket in a folder.
type Server struct {
	// Address is HOST:PORT of it, the same for its life.
	Address      string
	program, dir string
	cmd          *exec.Cmd
	said         bytes.Buffer
}

// Start starts a server on an empty folder, and returns when it answers; it ends with the test. Where the program is not built the test is
// skipped, or fails where SLUICE_KUBE=require. Tests that use it are three folders below the root.
func Start(t testing.TB, dir string) *Server {
	t.Helper()
	found, err := filepath.Glob("../../../.tmp/bin/versitygw-v*")
	if err != nil || len(found) == 0 {
		const why = "the S3 server is not built; `make versitygw` builds it (a minute, with a network)"
		if os.Getenv("SLUICE_KUBE") == "require" {
			t.Fatal(why)
		}
		t.Skip("skipped: " + why)
	}
	program, err := filepath.Abs(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{program: program, Address: free.Addr().String(), dir: dir}
	if err = free.Close(); err != nil {
		t.Fatal(err)
	}
	if err = os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err = s.Begin(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	plane.Eventually(t, "the S3 server answers", func() (bool, string) {
		c, err := net.Dial("tcp", s.Address)
		if err != nil {
			return false, err.Error()
		}
		return c.Close() == nil, ""
	})
	return s
}

// Begin starts it again on what lies there, after Kill.
func (s *Server) Begin() error {
	s.cmd = exec.Command(s.program, "--quiet", "--port", s.Address, "posix", s.dir) //nolint:gosec // what make versitygw has built
	s.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+access, "ROOT_SECRET_KEY="+secret)
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return s.cmd.Start()
}

// Kill ends it, as a machine that dies does. Of one that is ended already it is nothing.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}

// Spec is how the store in a server at an address is named.
func Spec(address string) string {
	return "s3://" + name + "?endpoint=http://" + address + "&region=us-east-1"
}

// Open opens the store in a server at an address, or leaves it to be opened, as an operator does.
func Open(ctx context.Context, address string) (*s3.Store, error) {
	o, err := s3.Parse(Spec(address))
	if err != nil {
		return nil, err
	}
	o.Access, o.Secret, o.Retries = access, secret, 2
	s, err := s3.Open(ctx, o)
	if errkind.Of(err) == errkind.Unavailable {
		return s3.New(o)
	}
	return s, err
}

// Objects are the keys of what lies in the bucket below a folder, as the server keeps them.
func (s *Server) Objects(below string) (keys []string, err error) {
	root := filepath.Join(s.dir, name)
	err = filepath.WalkDir(filepath.Join(root, below), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			keys = append(keys, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if os.IsNotExist(err) {
		err = nil
	}
	return keys, err
}
