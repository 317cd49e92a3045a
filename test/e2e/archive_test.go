package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// metric reads one number off the daemon's metrics; -1 while it does not answer.
func (d *daemon) metric(name string) int {
	resp, err := http.Get("http://" + d.addr + "/metrics")
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if err != nil || m == nil {
		return -1
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return -1
	}
	return int(n)
}

// archived waits until so many jobs are in the archive.
func (d *daemon) archived(n int) {
	d.t.Helper()
	d.until(fmt.Sprintf("%d jobs are archived", n), func() bool { return d.metric("sluice_archive_jobs") == n })
}

// list is the list of jobs.
func (d *daemon) list(args ...string) (jobs []jobView) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.must(append([]string{"jobs", "-o", "json"}, args...)...)), &jobs); err != nil {
		d.t.Fatal(err)
	}
	return jobs
}

// tiny is a job with two units.
func tiny(name string) string {
	return spec(name, "items: {total: 2, perItem: 1ms, grid: 2}", each(":"), "grace: 200ms")
}

// TestArchivedJobsAnswerAsBefore: what people hear of jobs that are over is the same, word for word, whether they are in memory or
// have left it, and after a kill; and they can be run again, deleted, replaced and repeated.
func TestArchivedJobsAnswerAsBefore(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi")
	mended := filepath.Join(t.TempDir(), "mended")
	for _, name := range []string{"one", "two", "three"} {
		d.submit(tiny(name), "--request-id", "request-"+name)
	}
	d.submit(spec("bad", "items: {total: 4, perItem: 1ms, grid: 1}", each(`[ $i -lt 2 ] || [ -e `+mended+` ] || exit 3`), "maxFailures: 1",
		"grace: 200ms"))
	d.submit(spec("late", "items: {total: 2, perItem: 1m, grid: 2}", "sleep 500", "grace: 200ms"))
	d.running("late", 1)
	d.must("cancel", "late")
	d.over("late")
	for _, name := range []string{"one", "two", "three"} {
		d.done(name)
	}
	if j := d.over("bad"); j.State != "FAILED" {
		t.Fatalf("%+v", j)
	}
	ask := func() map[string]string {
		said := map[string]string{"jobs": d.must("jobs", "-o", "json"), "failed": d.must("jobs", "-o", "json", "--state", "FAILED"),
			"newest": d.must("jobs", "-o", "json", "--limit", "2")}
		for _, name := range []string{"one", "two", "three", "bad", "late"} {
			said["job "+name] = d.must("job", name, "-o", "json")
			said["explain "+name] = d.must("explain", name)
			said["logs "+name] = d.must("logs", name)
			said["output "+name] = d.must("output", name, "-o", "json")
			_, said["cancel "+name], _ = d.sluice("cancel", name)
			_, said["pause "+name], _ = d.sluice("pause", name)
			_, said["wait "+name], _ = d.sluice("wait", name)
		}
		return said
	}
	same := func(when string, want map[string]string) {
		t.Helper()
		for what, got := range ask() {
			if got != want[what] {
				t.Errorf("%s, %s:\n%s\nand not\n%s", when, what, got, want[what])
			}
		}
	}
	d.kill()
	d.start() // what the market counts of a present life is not what this test is about
	before := ask()
	d.kill()
	d.flags = append(d.flags, "--keep-hot", "1ms")
	d.start()
	d.archived(5)
	same("archived", before)
	d.kill()
	d.start()
	same("archived, after a kill", before)

	for _, name := range []string{"one", "two", "three"} {
		says(t, d.submit(tiny(name), "--request-id", "request-"+name), "known already", "COMPLETED")
		says(t, d.submit(tiny(name)), "known already", "COMPLETED")
	}
	_, errs, code := d.as([]byte(spec("one", "items: {total: 3, perItem: 1ms, grid: 2}", each(":"))), "submit", "-f", "-")
	if code != 1 || !strings.Contains(errs, "other content") {
		t.Errorf("another job of an archived one's name: exit %d, %s", code, errs)
	}
	if err := os.WriteFile(mended, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, d.must("requeue", "bad"), "bad requeued")
	d.done("bad")
	d.once("bad", 4)
	d.must("delete", "two")
	d.fails(1, []string{`no job "two"`}, "job", "two") // at once, whatever is still on its way
	d.submit(spec("three", "items: {total: 6, perItem: 1ms, grid: 2}", each(":")), "--replace", "--wait")
	d.once("three", 6)
	d.archived(4)
	d.kill()
	d.start()
	d.fails(1, []string{`no job "two"`}, "job", "two")
	d.once("three", 6)
	d.once("bad", 4)
	if names := d.must("jobs", "-o", "name"); strings.Count(names, "\n") != 4 {
		t.Errorf("jobs: %s", names)
	}
	d.submit(tiny("two"), "--wait")
	d.once("two", 2)
}

// TestKilledWhileJobsLeaveAndGo: a daemon that is killed again and again, while jobs are filed, recalled, deleted and taken back,
// loses none and doubles none.
func TestKilledWhileJobsLeaveAndGo(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi+64Mi", "--keep-hot", "1ms", "--snapshot-records", "150")
	const jobs = 36
	name := func(i int) string { return fmt.Sprintf("job-%02d", i) }
	send := func(args ...string) { // until it is answered, as a client does whose daemon comes back
		t.Helper()
		d.until(strings.Join(args, " "), func() bool {
			_, errs, code := d.sluice(args...)
			if code == 0 || strings.Contains(errs, "no job") && args[0] == "delete" {
				return true
			}
			if !strings.Contains(errs, "not over") && !strings.Contains(errs, "answer") && !strings.Contains(errs, "connect") &&
				!strings.Contains(errs, "refused") && !strings.Contains(errs, "ask again") {
				t.Fatalf("%v: %s", args, errs)
			}
			return false
		})
	}
	for i := range jobs {
		file := d.write(name(i)+".yml", tiny(name(i)))
		send("submit", file, "--request-id", "r-"+name(i))
		if i%6 == 5 {
			time.Sleep(time.Duration(i*7%40) * time.Millisecond) // at another moment of the others' ways each time
			d.kill()
			d.start()
		}
	}
	for i := range jobs {
		d.done(name(i))
	}
	for i := range jobs {
		if i%3 == 0 {
			send("delete", name(i))
		}
		if i%9 == 4 {
			d.kill()
			d.start()
		}
	}
	d.until("the deleted are gone", func() bool { return len(d.list()) == jobs-jobs/3 })
	for i := range jobs {
		if i%3 == 0 {
			d.fails(1, []string{"no job"}, "job", name(i))
			continue
		}
		d.once(name(i), 2)
		says(t, d.must("submit", filepath.Join(d.dir, name(i)+".yml"), "--request-id", "r-"+name(i)), "known already")
		d.must("explain", name(i))
	}
	for i := 0; i < jobs; i += 3 { // the names are free, and nothing of before is in the way
		d.must("submit", filepath.Join(d.dir, name(i)+".yml"), "--wait")
		d.once(name(i), 2)
	}
	d.archived(jobs)
}

// TestArchivedJobsAreForgotten: by number, the first end first, and by age; their output goes with them, through kills.
func TestArchivedJobsAreForgotten(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi", "--keep-hot", "1ms", "--retain-jobs", "3")
	for i := range 8 {
		d.submit(tiny(fmt.Sprintf("job-%d", i)), "--wait")
		if i == 5 {
			d.kill()
			d.start()
		}
	}
	d.until("three are left", func() bool {
		return strings.TrimSpace(d.must("jobs", "-o", "name")) == "job-5\njob-6\njob-7"
	})
	d.once("job-7", 2)
	stored := func() int {
		list, err := os.ReadDir(filepath.Join(d.data, "output"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	d.until("their output is gone", func() bool { return stored() == 3 })
	d.kill()
	d.flags = append(d.flags, "--retain", "1s")
	d.start()
	d.until("nothing is left", func() bool { return d.must("jobs", "-o", "name") == "" && stored() == 0 })
	d.archived(0)
	d.submit(tiny("job-0"), "--wait")
}

// TestAnArchiveThatIsNotTheOneIsRefused, with the file's name and what to do, and nothing is changed; a repair goes on without.
func TestAnArchiveThatIsNotTheOneIsRefused(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func(t *testing.T, path string, older []byte){
		"missing":  func(t *testing.T, path string, _ []byte) { remove(t, path) },
		"empty":    func(t *testing.T, path string, _ []byte) { put(t, path, nil) },
		"older":    func(t *testing.T, path string, older []byte) { put(t, path, older) },
		"cut":      func(t *testing.T, path string, older []byte) { put(t, path, older[:10_000]) },
		"nonsense": func(t *testing.T, path string, _ []byte) { put(t, path, []byte(strings.Repeat("no archive ", 9000))) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := up(t, "sim:custom,mem=64Mi", "--keep-hot", "1ms")
			path := filepath.Join(d.data, "archive", "jobs.db")
			d.submit(tiny("first"), "--wait")
			d.archived(1)
			d.end(9)
			older, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d.start()
			for _, name := range []string{"a", "b", "c"} {
				d.submit(tiny(name), "--wait")
			}
			d.archived(4)
			// What the gate has not let go of is filed anew after a start, before a job that comes later.
			n := 4
			d.until("the gate has let go", func() bool {
				d.kill()
				d.start()
				d.submit(tiny(fmt.Sprint("later-", n)), "--wait")
				n++
				d.archived(n)
				return d.metric("sluice_archive_parts_filed_total") <= 2
			})
			d.end(syscall.SIGTERM) // after a kill the next start may have HEAD to write again
			damage(t, path, older)
			journal := files(t, filepath.Join(d.data, "journal"))
			delete(journal, filepath.Join(d.data, "journal", "LOCK"))
			text := d.refused()
			says(t, text, filepath.Join(d.data, "archive"), "restore", "sluice archive repair")
			if strings.Contains(text, "goroutine") {
				t.Errorf("a crash, want a refusal: %s", text)
			}
			after := files(t, filepath.Join(d.data, "journal"))
			for name, data := range journal {
				if after[name] != data {
					t.Errorf("%s was changed by a daemon that refused", name)
				}
			}
			d.must("archive", "repair", "--data", d.data)
			text = d.refused()
			said := regexp.MustCompile(`--without (\d+) --change (\d+)`).FindStringSubmatch(text)
			if said == nil {
				t.Fatalf("it does not say how many are missing: %s", text)
			}
			missing, err := strconv.Atoi(said[1])
			// The last one may be hot still, as far as the journal knows.
			if err != nil || missing == 0 || missing > n || what == "older" && missing < n-2 || what == "missing" && missing < n-1 {
				t.Errorf("missing: %s", text)
			}
			says(t, d.must("archive", "repair", "--data", d.data, "--without", said[1], "--change", said[2]), "may be missing")
			d.start()
			if left := len(d.list()); left != n-missing {
				t.Errorf("%d jobs are left of %d", left, n)
			}
			d.submit(tiny("a"), "--wait")
			d.once("a", 2)
			d.kill()
			d.start()
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestADamagedJobHidesNoOther: of one archived job what was filed is damaged, of another its place in the list. The others are listed, and
// who lists hears which are not and what to do about it, which then helps.
func TestADamagedJobHidesNoOther(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi", "--keep-hot", "1ms")
	d.must("queue", "set", "spoiled-queue")
	for _, name := range []string{"first", "second"} {
		d.submit(tiny(name), "--wait")
	}
	const two = "items: {total: 2, perItem: 1ms, grid: 2}"
	d.submit(spec("damaged", two, each(": spoiled-command"), "grace: 200ms"), "--wait")
	d.submit(spec("hidden", two, each(":"), "grace: 200ms", "queue: spoiled-queue"), "--wait")
	d.submit(tiny("third"), "--wait")
	d.archived(5)
	d.submit(tiny("fourth"), "--wait") // by then the gate has let go of the others
	d.archived(6)
	d.end(syscall.SIGTERM)
	path := filepath.Join(d.data, "archive", "jobs.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"spoiled-command", "spoiled-queue"} {
		if !strings.Contains(string(whole), what) {
			t.Fatalf("the archive does not say %s", what)
		}
	}
	put(t, path, []byte(strings.ReplaceAll(string(whole), "spoiled-", "spoiLed-")))
	d.start()
	all := []string{"first", "second", "third", "fourth"}
	for _, args := range [][]string{{"-o", "name"}, {"-o", "name", "--limit", "4"}, {"-o", "name", "--state", "COMPLETED"}} {
		out, errs, code := d.sluice(append([]string{"jobs"}, args...)...)
		if got := strings.Fields(out); code != 0 || !slices.Equal(got, all) {
			t.Errorf("%q: exit %d, %q, %s", args, code, got, errs)
		}
		says(t, errs, `"damaged"`, `"hidden"`, path, "restore the archive's directory from a backup", "sluice archive repair")
	}
	d.end(syscall.SIGTERM)
	d.must("archive", "repair", "--data", d.data)
	said := regexp.MustCompile(`--without (\d+) --change (\d+)`).FindStringSubmatch(d.refused())
	if said == nil {
		t.Fatal("it does not say how many are missing")
	}
	d.must("archive", "repair", "--data", d.data, "--without", said[1], "--change", said[2])
	d.start()
	if out, errs, code := d.sluice("jobs", "-o", "name"); code != 0 || errs != "" || !slices.Equal(strings.Fields(out), all) {
		t.Errorf("repaired: exit %d, %q, %s", code, out, errs)
	}
}
