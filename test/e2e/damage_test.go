package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// segment is the newest file of the journal.
func (d *daemon) segment() string {
	d.t.Helper()
	list, err := filepath.Glob(filepath.Join(d.data, "journal", "*.seg"))
	if err != nil || len(list) == 0 {
		d.t.Fatalf("no journal: %v", err)
	}
	return slices.Max(list)
}

// damage changes a file by a function of its content.
func (d *daemon) damage(path string, change func([]byte) []byte) {
	d.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// files is the content of everything below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDamagedJournalIsNamedAndRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]byte) []byte{
		"a flipped bit in a record":  func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"a flipped bit in the start": func(b []byte) []byte { b[20] ^= 4; return b },
		"synced records cut off":     func(b []byte) []byte { return b[:len(b)*2/3] },
		"an empty file":              func([]byte) []byte { return nil },
		"a page of zeroes":           func(b []byte) []byte { clear(b[len(b)/3 : len(b)/2]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := up(t, three)
			d.submit(spec("first", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
			d.kill()
			seg := d.segment()
			d.damage(seg, change)
			before := files(t, filepath.Join(d.data, "journal"))
			text := d.refused()
			says(t, text, filepath.Base(seg))
			if strings.Contains(text, "goroutine") {
				t.Errorf("a crash, want a refusal: %s", text)
			}
			after := files(t, filepath.Join(d.data, "journal"))
			delete(before, filepath.Join(d.data, "journal", "LOCK"))
			for path, data := range before {
				if after[path] != data {
					t.Errorf("%s was changed by a daemon that refused it", path)
				}
			}
			d.fails(1, []string{filepath.Base(seg)}, "journal", "verify", "--data", d.data)
		})
	}
}

// TestAJournalWithoutItsHeadIsRefused: with the last record cut off too, nobody else would notice.
func TestAJournalWithoutItsHeadIsRefused(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	d.submit(spec("first", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.kill()
	if err := os.Remove(filepath.Join(d.data, "journal", "HEAD")); err != nil {
		t.Fatal(err)
	}
	says(t, d.refused(), "HEAD", "sluice journal truncate", "nothing was changed")
	out, errs, code := d.sluice("journal", "verify", "--data", d.data)
	last := regexp.MustCompile(`record (\d+) \(`).FindStringSubmatch(out)
	if says(t, errs, "HEAD"); code != 1 || last == nil {
		t.Fatalf("verify does not say where the journal ends: exit %d\n%s%s", code, out, errs)
	}
	d.fails(2, []string{"ends with record " + last[1]}, "journal", "accept-end", "--data", d.data, "--record", "1")
	d.must("journal", "truncate", "--data", d.data, "--record", last[1])
	d.start()
	d.done("first")
	d.once("first", 10)
}

// TestAMissingWorkDirectoryIsNamedAtTheStart, and the same submission brings it back.
func TestAMissingWorkDirectoryIsNamedAtTheStart(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	if err := os.Mkdir(filepath.Join(d.dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.write("work/work.sh", "sleep 60")
	file := d.write("work/job.yaml", spec("needy", "items: {total: 10, perItem: 1s}", "sh ./work.sh", "workdir: ."))
	d.must("submit", file)
	d.kill()
	blobs, err := filepath.Glob(filepath.Join(d.data, "store", "objects", "*", "*"))
	if err != nil || len(blobs) != 1 {
		t.Fatalf("stored work directories: %v, %v", blobs, err)
	}
	if err := os.Remove(blobs[0]); err != nil {
		t.Fatal(err)
	}
	d.start()
	says(t, d.log.String(), "work directory of a job is missing", "job=needy")
	d.must("submit", file)
	if back, err := filepath.Glob(filepath.Join(d.data, "store", "objects", "*", "*")); err != nil || !slices.Equal(back, blobs) {
		t.Errorf("the same submission does not bring it back: %v, %v", back, err)
	}
}

func TestUnacknowledgedTailIsDropped(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	d.submit(spec("first", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.kill()
	d.damage(d.segment(), func(b []byte) []byte { return append(b, b[len(b)-90:len(b)-40]...) })
	d.start()
	d.done("first")
	d.once("first", 10)
	d.submit(spec("second", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.kill()
	d.start()
	d.done("second")
}

func TestUnknownFormatIsRefusedUntouched(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	d.kill()
	d.damage(filepath.Join(d.data, "FORMAT"), func([]byte) []byte { return []byte("sluice data 99\n") })
	before := files(t, d.data)
	says(t, d.refused(), "sluice data 99", "nothing was changed")
	after := files(t, d.data)
	if len(before) != len(after) {
		t.Errorf("%d files, before %d", len(after), len(before))
	}
	for path, data := range before {
		if after[path] != data {
			t.Errorf("%s was changed", path)
		}
	}
}

func TestForeignDirectoryIsRefusedUntouched(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, three)
	if err := os.Mkdir(d.data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.data, "thesis.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	says(t, d.refused(), "thesis.txt", "not a data directory", "nothing was changed")
	if all := files(t, d.data); len(all) != 1 {
		t.Errorf("files were made: %v", all)
	}
}
