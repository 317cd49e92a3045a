//go:build kubernetes

package soak

import (
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
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/s3"
	"sluice.dev/sluice/internal/edge/store/tree"
	"sluice.dev/sluice/test/kube/plane"
)

// bucket is a store of kind s3 on a real server, which can be killed and begun again.
type bucket struct {
	program, address, dir string
	server                *exec.Cmd
}

func newBucket(t *testing.T, dir string) *bucket {
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
	b := &bucket{program: program, address: free.Addr().String(), dir: dir}
	if err = free.Close(); err != nil {
		t.Fatal(err)
	}
	if err = os.Mkdir(filepath.Join(dir, "bucket"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err = b.begin(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.kill)
	plane.Eventually(t, "the S3 server answers", func() (bool, string) {
		c, err := net.Dial("tcp", b.address)
		if err != nil {
			return false, err.Error()
		}
		return c.Close() == nil, ""
	})
	return b
}

// begin starts the server, on what lies there.
func (b *bucket) begin() error {
	b.server = exec.Command(b.program, "--quiet", "--port", b.address, "posix", b.dir)
	b.server.Env = append(os.Environ(), "ROOT_ACCESS_KEY=access", "ROOT_SECRET_KEY=a-secret-of-tests")
	b.server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return b.server.Start()
}

// kill ends it, as a machine that dies does.
func (b *bucket) kill() {
	_ = b.server.Process.Kill()
	_ = b.server.Wait() // it was killed
}

// openStore opens the store at an address, or leaves it to be opened, as an operator does.
func openStore(ctx context.Context, address string) (*s3.Store, error) {
	o, err := s3.Parse("s3://bucket?endpoint=http://" + address + "&region=us-east-1")
	if err != nil {
		return nil, err
	}
	o.Access, o.Secret, o.Retries = "access", "a-secret-of-tests", 2
	s, err := s3.Open(ctx, o)
	if errkind.Of(err) == errkind.Unavailable {
		return s3.New(o)
	}
	return s, err
}

// incoming are the places of Pods at which something lies, as the server keeps them.
func (b *bucket) incoming() (places []string, err error) {
	root := filepath.Join(b.dir, "bucket", "incoming")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			places = append(places, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if os.IsNotExist(err) {
		err = nil
	}
	return places, err
}

// outputs are the committed outputs in the store, of all jobs and all of their lives.
func outputs(ctx context.Context, where store.Store, scratch string) (list []output, err error) {
	err = where.Names(ctx, "outputs", func(n store.Named) error {
		// outputs/OWNER/NAMESPACE.JOB/LIFE/FROM-TO.TOKEN
		o := output{name: n.Name}
		words := strings.Split(n.Name, "/")
		span, token, _ := strings.Cut(words[len(words)-1], ".")
		from, to, _ := strings.Cut(span, "-")
		o.token, o.from, o.to = token, number(from), number(to)
		if len(words) == 5 {
			_, o.job, _ = strings.Cut(words[2], ".")
		}
		if _, err := job.ParseToken(token); err != nil {
			o.job = ""
		}
		r, err := where.Open(ctx, n.Refs["output"])
		if err != nil {
			return err
		}
		at, err := os.MkdirTemp(scratch, "output-")
		if err != nil {
			return err
		}
		if _, _, err = tree.Restore(r, filepath.Join(at, "tree"), tree.Limits{Bytes: 1 << 20, Entries: 100}); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(at, "tree", "units"))
		o.text = string(text)
		list = append(list, o)
		return err
	})
	return list, err
}
