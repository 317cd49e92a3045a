//go:build kubernetes

package operator_test

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store/s3"
	"sluice.dev/sluice/test/kube/plane"
)

// bucket is a store of kind s3 on a real server, which can be killed and begun again.
type bucket struct {
	testing.TB
	program, address, dir string
	server                *exec.Cmd
	said                  bytes.Buffer
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	found, err := filepath.Glob("../../../.tmp/bin/versitygw-v*")
	if err != nil || len(found) == 0 {
		t.Skip("skipped: the S3 server is not built; `make versitygw` builds it (a minute, with a network)")
	}
	program, err := filepath.Abs(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bucket{TB: t, program: program, address: free.Addr().String(), dir: t.TempDir()}
	if err = free.Close(); err != nil {
		t.Fatal(err)
	}
	if err = os.Mkdir(filepath.Join(b.dir, "bucket"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.begin()
	t.Cleanup(b.kill)
	return b
}

// begin starts the server, on what lies there.
func (b *bucket) begin() {
	b.Helper()
	b.server = exec.Command(b.program, "--quiet", "--port", b.address, "posix", b.dir)
	b.server.Env = append(os.Environ(), "ROOT_ACCESS_KEY=access", "ROOT_SECRET_KEY=a-secret-of-tests")
	b.server.Stdout, b.server.Stderr = &b.said, &b.said
	if err := b.server.Start(); err != nil {
		b.Fatal(err)
	}
	plane.Eventually(b.TB, "the S3 server answers", func() (bool, string) {
		c, err := net.Dial("tcp", b.address)
		if err != nil {
			return false, err.Error()
		}
		return c.Close() == nil, ""
	})
}

// kill ends it, as a machine that dies does.
func (b *bucket) kill() {
	if b.server != nil {
		_ = b.server.Process.Kill()
		_ = b.server.Wait() // it was killed
		b.server = nil
	}
}

// spec is how the store is named.
func (b *bucket) spec() string {
	return "s3://bucket?endpoint=http://" + b.address + "&region=us-east-1"
}

func (b *bucket) open(ctx context.Context) (*s3.Store, error) {
	o, err := s3.Parse(b.spec())
	if err != nil {
		return nil, err
	}
	o.Access, o.Secret, o.Retries = "access", "a-secret-of-tests", 2
	s, err := s3.Open(ctx, o)
	if errkind.Of(err) == errkind.Unavailable { // as an operator opens it
		return s3.New(o)
	}
	return s, err
}

// objects are the keys of what lies in the bucket below a folder, as the server keeps them.
func (b *bucket) objects(below string) (keys []string) {
	b.Helper()
	root := filepath.Join(b.dir, "bucket")
	err := filepath.WalkDir(filepath.Join(root, below), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		keys = append(keys, strings.TrimPrefix(path, root+"/"))
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	return keys
}
