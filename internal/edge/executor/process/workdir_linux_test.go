package process_test

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// put stores a work directory with these files.
func (b *bench) put(files ...tar.Header) string {
	b.Helper()
	stored, err := b.ex.PutWorkdir(pack(b, files...), 64<<20)
	if err != nil {
		b.Fatal(err)
	}
	return stored.ID
}

// many are so many small files of a work directory: f, f1, f2, ...
func many(n int) []tar.Header {
	files := []tar.Header{{Name: "f", Typeflag: tar.TypeReg}}
	for i := 1; i < n; i++ {
		files = append(files, tar.Header{Name: "f" + strconv.Itoa(i), Typeflag: tar.TypeReg})
	}
	return files
}

// original is the only unpacked work directory.
func (b *bench) original() string {
	b.Helper()
	all, err := filepath.Glob(filepath.Join(b.o.DataDir, "unpacked", "*", "*"))
	if err != nil || len(all) != 1 {
		b.Fatalf("unpacked work directories %v (%v), want one", all, err)
	}
	return all[0]
}

// shape is a tree with everything that a subjob could change of it.
func shape(t testing.TB, root string) string {
	t.Helper()
	var s strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(data)
		}
		fmt.Fprintln(&s, strings.TrimPrefix(path, root), info.Mode(), info.ModTime().UnixNano(), content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.String()
}

// spoil changes a work directory in every way there is, and says first what it found.
const spoil = `ls -R . | sort | tr '\n' ' '; cat a/b/f
echo changed >a/b/f; rm a/g; mkdir a/new; echo x >a/new/h; chmod 700 a/b/f; touch -d 2001-01-01 a/b; ln -s / a/root
ln a/b/f a/hard; echo more >>a/hard; mv a/b/f a/b/e; rm -r a/b; echo also >top`

func TestAWorkDirectoryIsSeenAsItWasByEverySubjob(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		id := b.put(tar.Header{Name: "a/b/f", Typeflag: tar.TypeReg}, tar.Header{Name: "a/g", Typeflag: tar.TypeReg},
			tar.Header{Name: "data", Linkname: "a/g", Typeflag: tar.TypeSymlink})
		seen, before := "", ""
		for i := range 3 {
			m := lease(time.Minute, "sh", "-ec", spoil)
			m.Token.Seq = uint64(i + 1)
			m.Body.(*protocol.Work).Spec.Launch.Workdir = id
			r := b.run(m, job.Done)
			out := shim.Tail(shim.Dir(filepath.Join(b.o.DataDir, "runs", m.Token.String())).Stdout(), 10, 1000)
			if seen == "" {
				seen, before = out, shape(t, b.original())
			}
			if out != seen || !strings.Contains(out, "a/b/f") {
				t.Errorf("subjob %d saw %q, the first %q", i, out, seen)
			}
			if after := shape(t, b.original()); after != before {
				t.Errorf("subjob %d changed the original:\n%s\nwas\n%s", i, after, before)
			}
			if r.Prepare <= 0 || (r.Unpack > 0) != (i == 0) || r.Unpack > r.Prepare {
				t.Errorf("subjob %d: %v were gone at its start, %v of it for unpacking", i, r.Prepare, r.Unpack)
			}
		}
	})
}

func TestSubjobsAtOnceShareAnOriginal(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		id := b.put(tar.Header{Name: "f", Typeflag: tar.TypeReg})
		const n = 6
		for i := range n {
			m := lease(time.Minute, "sh", "-ec", `test "$(cat f)" = f; echo $SLUICE_SUBJOB >f; sleep 0.2; test "$(cat f)" = $SLUICE_SUBJOB`)
			m.Token.Seq = uint64(i + 1)
			m.Body.(*protocol.Work).Spec.Launch.Workdir = id
			b.do(m)
		}
		for ended := 0; ended < n; {
			select {
			case m := <-b.said:
				if m.Kind == protocol.Exited {
					if ended++; m.Body.(*protocol.Conclusion).Result.Outcome != job.Done {
						t.Errorf("subjob %v: %+v", m.Token, m.Body.(*protocol.Conclusion).Result)
					}
				}
			case <-time.After(30 * time.Second):
				t.Fatal("they do not end")
			}
		}
		if data, err := os.ReadFile(filepath.Join(b.original(), "f")); err != nil || string(data) != "f" {
			t.Errorf("the original holds %q, %v", data, err)
		}
	})
}

func TestTheOriginalIsOutOfReach(t *testing.T) {
	b := newBench(t, nil)
	if !strings.Contains(b.ex.Isolation(), "work directory by overlay") {
		t.Skip("no overlay here: " + b.ex.Isolation())
	}
	id := b.put(tar.Header{Name: "f", Typeflag: tar.TypeReg})
	m := lease(time.Minute, "sh", "-c", fmt.Sprintf("cat f; ls %s/unpacked/*/*; echo x >%[1]s/unpacked/*/%s/f; echo; mount | grep -c "+
		"overlay", b.o.DataDir, id))
	m.Body.(*protocol.Work).Spec.Launch.Workdir = id
	b.run(m, job.Done)
	if out := shim.Tail(b.dir().Stdout(), 10, 1000); out != "f\n1" {
		t.Errorf("the program saw %q, want its file and nothing of the original", out)
	}
	if data, err := os.ReadFile(filepath.Join(b.original(), "f")); err != nil || string(data) != "f" {
		t.Errorf("the original holds %q, %v", data, err)
	}
}

func TestOriginalsComeAndGo(t *testing.T) {
	b := newBench(t, nil)
	id := b.put(tar.Header{Name: "f", Typeflag: tar.TypeReg})
	m := polite(lease(time.Minute, self(t, "polite")...))
	m.Body.(*protocol.Work).Spec.Launch.Workdir = id
	b.do(m)
	b.next(protocol.Started)
	original := b.original()
	nobody := func(string) bool { return false }
	prune := func(needed func(string) bool) {
		t.Helper()
		if err := b.ex.PruneUnpacked(needed); err != nil {
			t.Fatal(err)
		}
	}
	// A daemon was killed while it unpacked, and the machine was started before that.
	half, old := filepath.Join(filepath.Dir(original), ".new-"+id), filepath.Join(b.o.DataDir, "unpacked", "earlier", id)
	for _, dir := range []string{half, old} {
		must(os.MkdirAll(filepath.Join(dir, "a"), 0o700))
	}
	if err := b.ex.Close(); err != nil {
		t.Fatal(err)
	}
	if found := b.open(); len(found) != 1 || !found[0].Alive {
		t.Fatalf("found %+v", found)
	}
	b.await("what is of no use to go", func() bool {
		_, errHalf := os.Stat(half)
		_, errOld := os.Stat(filepath.Dir(old))
		return os.IsNotExist(errHalf) && os.IsNotExist(errOld)
	})
	if prune(nobody); b.original() != original {
		t.Error("the original of a subjob that runs was removed")
	}
	b.do(protocol.Message{Kind: protocol.Stop, Token: token, Body: &protocol.Halt{}})
	b.exited(job.Yielded)
	if prune(func(s string) bool { return s == id }); b.original() != original {
		t.Error("the original of a job that lives was removed")
	}
	prune(nobody)
	if _, err := os.Stat(original); !os.IsNotExist(err) {
		t.Errorf("an original that nobody needs stands: %v", err)
	}
	m.Token.Seq++ // and it comes again
	m.Body.(*protocol.Work).Spec.Launch.Command = []string{"cat", "f"}
	m.Body.(*protocol.Work).Start, m.Body.(*protocol.Work).End = lease(time.Minute).Body.(*protocol.Work).Start,
		lease(time.Minute).Body.(*protocol.Work).End
	if r := b.run(m, job.Done); r.Unpack <= 0 {
		t.Errorf("result %+v, want it unpacked again", r)
	}
}

func TestAMappedUserOwnsItsWorkDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a subjob as another user")
	}
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, func(o *process.Options) {
			change(o)
			o.User = func(string) (*shim.User, error) { return &shim.User{Name: "nobody", UID: 65534, GID: 65534}, nil }
		})
		open(t, b.o.DataDir)
		id := b.put(tar.Header{Name: "a/b/f", Typeflag: tar.TypeReg}, tar.Header{Name: "a/g", Typeflag: tar.TypeReg})
		m := lease(time.Minute, "sh", "-ec", "stat -c %u:%g . a a/b a/b/f | sort -u; echo x >a/b/f; rm a/g; rm -r a; echo y >z; echo t "+
			">$TMPDIR/t; ls "+b.o.DataDir+"/unpacked 2>&1 | sed 's/.*: //'")
		m.Body.(*protocol.Work).Spec.Launch.Workdir = id
		b.run(m, job.Done)
		if out := shim.Tail(b.dir().Stdout(), 10, 1000); out != "65534:65534\nPermission denied" {
			t.Errorf("the program saw %q", out)
		}
		if data, err := os.ReadFile(filepath.Join(b.original(), "a/b/f")); err != nil || string(data) != "a/b/f" {
			t.Errorf("the original holds %q, %v", data, err)
		}
		b.settle(false, job.Range{})
		if _, err := os.Stat(string(b.dir())); !os.IsNotExist(err) {
			t.Errorf("the run directory stands after settling: %v", err)
		}
	})
}

// TestWhatAStartCosts prints what is gone of a lease's time when a job of 2,000 files and 16 MB starts, the first time and
// later ones.
func TestWhatAStartCosts(t *testing.T) {
	for name, change := range map[string]func(*process.Options){"best": func(*process.Options) {},
		"copy": func(o *process.Options) { o.Isolation = treeOnly() }} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, change)
			files := make([]tar.Header, 2000)
			for i := range files {
				files[i] = tar.Header{Name: fmt.Sprintf("d%d/%s%d", i/100, strings.Repeat("f", 90), i), Typeflag: tar.TypeReg,
					Size: 8 << 10}
			}
			id := b.put(files...)
			for i := range 4 {
				m := lease(time.Minute, "true")
				m.Token.Seq = uint64(i + 1)
				m.Body.(*protocol.Work).Spec.Launch.Workdir = id
				r := b.run(m, job.Done)
				t.Logf("start %d: %v gone, %v of it for unpacking (%s)", i+1, r.Prepare.Round(time.Millisecond),
					r.Unpack.Round(time.Millisecond), b.ex.Isolation())
				if (r.Unpack > 0) != (i == 0) {
					t.Errorf("start %d unpacked for %v", i+1, r.Unpack)
				}
			}
		})
	}
}

// TestRightsAndTimesOfAWorkDirectory: they are the submitter's, and so is the umask; what a subjob says is for nobody else to read.
func TestRightsAndTimesOfAWorkDirectory(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		at := time.Unix(1_000_000_000, 0)
		id := b.put(tar.Header{Name: "open/key", Typeflag: tar.TypeReg, Mode: 0o600, ModTime: at},
			tar.Header{Name: "run", Typeflag: tar.TypeReg, Mode: 0o754, ModTime: at})
		for i, u := range []job.Umask{{}, {Named: true, Bits: 0o027}, {Named: true}} {
			m := lease(time.Minute, "sh", "-c", "umask; stat -c '%a %Y %n' open/key run")
			m.Token.Seq = uint64(i + 1)
			launch := &m.Body.(*protocol.Work).Spec.Launch
			launch.Workdir, launch.Umask = id, u
			b.run(m, job.Done)
			log := shim.Dir(filepath.Join(b.o.DataDir, "runs", m.Token.String())).Stdout()
			want := fmt.Sprintf("%04o\n600 1000000000 open/key\n754 1000000000 run", u.Mask())
			if out := shim.Tail(log, 10, 1000); out != want {
				t.Errorf("umask %+v: the program saw\n%s\nwant\n%s", u, out, want)
			}
			if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("its log: %v, %v, want rights 600", info, err)
			}
		}
	})
}
