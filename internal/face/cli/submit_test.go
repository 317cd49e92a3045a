package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/clitest"
	"sluice.dev/sluice/internal/face/cli/daemon"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/host"
)

const jobFile = `apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec: {items: {total: 100, perItem: 20ms}, memory: 600Mi, command: [count]%s}
`

// TestSubmit: files are checked before anything is sent, go with their directories, and say what became of them.
func TestSubmit(t *testing.T) {
	fake := apitest.New()
	addr := answering(t, fake)
	dir := clitest.Tree(t, map[string]string{
		"src/run.sh": "#!/bin/sh",
		"one.yml":    fmt.Sprintf(jobFile, "one", ", workdir: src"),
		"two.yml":    fmt.Sprintf(jobFile, "two", "") + "---\n" + fmt.Sprintf(jobFile, "three", ""),
		"bad.yml":    fmt.Sprintf(jobFile, "Bad", ", wordkir: ."),
	})
	path := func(name string) string { return filepath.Join(dir, name) }

	r := sluice(t, addr, "", "submit", path("one.yml"), path("bad.yml"), path("missing.yml"))
	if r.code != command.ExitUsage || len(fake.Calls()) > 0 || !strings.Contains(r.err, `bad.yml:3:18: metadata.name: is "Bad"`) ||
		!strings.Contains(r.err, `spec.wordkir: unknown key; did you mean "workdir"?`) ||
		!strings.Contains(r.err, "missing.yml: no such file") {
		t.Errorf("%+v, calls %q", r, fake.Calls())
	}

	r = sluice(t, addr, "", "submit", path("one.yml"), "-f", path("two.yml"))
	if want := "job two accepted\njob three accepted\njob one accepted\n"; r.code != 0 || r.out != want {
		t.Errorf("%+v, want %q", r, want)
	}
	r = sluice(t, addr, fmt.Sprintf(jobFile, "four", ", workdir: "+path("src")), "submit", "-f", "-", "-o", "json", "--request-id", "mine")
	if r.code != 0 || !strings.Contains(r.out, `"created": true`) || !strings.Contains(r.out, `"warnings": []`) {
		t.Errorf("%+v", r)
	}
	if got := clitest.Entries(t, fake.Workdir()); !slices.Equal(got, []string{"0 600 run.sh #!/bin/sh"}) {
		t.Errorf("snapshot %q", got)
	}
	r = sluice(t, addr, fmt.Sprintf(jobFile, "four", ""), "submit", "-", "--request-id", "mine")
	if r.code != 0 || r.out != "job four known already, nothing changed\n" {
		t.Errorf("%+v", r)
	}
	r = sluice(t, addr, fmt.Sprintf(jobFile, "train", ""), "submit", "-")
	if r.code != command.ExitFailed || !strings.Contains(r.err, "exists already with other content") {
		t.Errorf("%+v", r)
	}
	r = sluice(t, addr, fmt.Sprintf(jobFile, "five", ", workdir: nowhere"), "submit", "-")
	if r.code != command.ExitFailed || !strings.Contains(r.err, "nowhere: no such file") {
		t.Errorf("%+v", r)
	}
	r = sluice(t, addr, "", "submit", path("one.yml"), path("one.yml"), path("two.yml"), "--request-id", "x")
	if r.code != command.ExitUsage || !strings.Contains(r.err, "--request-id names one call") {
		t.Errorf("%+v", r)
	}

	before := len(fake.Calls())
	r = sluice(t, addr, "", "submit", "--dry-run", path("one.yml"))
	if r.code != 0 || len(fake.Calls()) != before ||
		!strings.Contains(r.out, "one: would start in the next window\nmay start   12:01:00 to 12:02:00") ||
		!strings.Contains(r.out, "[0,100)") {
		t.Errorf("%+v", r)
	}
	r = sluice(t, addr, "", "submit", "--dry-run", "-o", "json", path("two.yml"))
	if r.code != 0 || strings.Count(r.out, `"summary"`) != 2 {
		t.Errorf("%+v", r)
	}
}

// TestSubmitWait: it ends with the job, and its exit code says how.
func TestSubmitWait(t *testing.T) {
	for state, code := range map[job.State]int{job.Finished: command.ExitOK, job.Failed: command.ExitFailed} {
		fake := apitest.New()
		addr := answering(t, fake)
		done := make(chan result, 1)
		go func() { done <- sluice(t, addr, fmt.Sprintf(jobFile, "one", ""), "submit", "-", "--wait") }()
		accepted, stop := fake.Watch()
		defer stop()
		for ctx := t.Context(); ; {
			if j, err := fake.Job(ctx, "one"); err == nil && j.State == job.Waiting {
				break
			}
			<-accepted
		}
		fake.Set(status.Job{Name: "one", State: state, Progress: 100, Total: 100, Unit: "item", Reason: "so it is"})
		r := <-done
		if r.code != code || !strings.Contains(r.out, "job one accepted\njob one "+state.String()+", 100/100 100% items: so it is\n") {
			t.Errorf("%s: %+v", state, r)
		}
	}
}

// TestOutputAndLogs: bytes arrive as they are, whatever they are.
func TestOutputAndLogs(t *testing.T) {
	fake := apitest.New()
	fake.LogText = "\x00\xff raw \n"
	dir := clitest.Tree(t, map[string]string{"x": "one\n", "y": "two"})
	fake.OutputList = []status.Output{{Token: job.Token{Epoch: 1, Seq: 1}, Range: job.Range{To: 10}, Path: dir, Files: []string{"x", "y"},
		Bytes: 7}}
	addr := answering(t, fake)
	if r := sluice(t, addr, "", "logs", "train"); r.code != 0 || r.out != fake.LogText {
		t.Errorf("%+v", r)
	}
	if r := sluice(t, addr, "", "output", "train", "--cat"); r.code != 0 || r.out != "one\ntwo" {
		t.Errorf("%+v", r)
	}
	if r := sluice(t, addr, "", "output", "train", "--cat", "--file", "[x]"); r.code != 0 || r.out != "one\n" {
		t.Errorf("%+v", r)
	}
	if r := sluice(t, addr, "", "output", "train", "--cat", "--file", "*.txt"); r.code != command.ExitFailed || r.out != "" ||
		!strings.Contains(r.err, "no file of its committed output is *.txt: there are x, y") {
		t.Errorf("%+v", r)
	}
	if r := sluice(t, addr, "", "output", "train", "--cat", "--subjob", "3-3"); r.code != command.ExitFailed ||
		!strings.Contains(r.err, "no committed subjob 3-3") {
		t.Errorf("%+v", r)
	}
	if r := sluice(t, addr, "", "logs", "nobody"); r.code != command.ExitFailed || !strings.Contains(r.err, "there is no job nobody") {
		t.Errorf("%+v", r)
	}
}

// TestTheLastLinesOfALog: -n and --tail show the last lines of what there is; a follower hears what comes behind them, and nothing twice.
func TestTheLastLinesOfALog(t *testing.T) {
	fake := apitest.New()
	fake.LogText = "one\ntwo\nthree\nfo"
	one := job.Token{Epoch: 1, Seq: 42}
	fake.FollowLog = func(_ context.Context, from host.LogFollow, tell func(host.LogPiece) error) error {
		if len(from.Seen) != 1 || from.Seen[0] != (host.LogPosition{Token: one, Out: int64(len(fake.LogText))}) || from.Since != 0 {
			t.Errorf("it follows from %+v", from)
		}
		return errors.Join(tell(host.LogPiece{Token: one, Data: []byte("ur\n")}), tell(host.LogPiece{Token: one, Over: true}))
	}
	addr := answering(t, fake)
	for args, want := range map[string]string{
		"-n 2": "three\nfo", "--tail 1": "fo", "-n 0": "", "-n 9": fake.LogText, "-n 2 --subjob 1-42 -f": "three\nfour\n",
		"-f -n 2": "1-42 | three\n1-42 | four\n", "-f -n 0": "1-42 | ur\n",
		"-n 2 -o json": `{"subjob":"1-42","stream":"stdout","line":"three"}` + "\n" + `{"subjob":"1-42","stream":"stdout","line":"fo"}` +
			"\n",
	} {
		if r := sluice(t, addr, "", append([]string{"logs", "train"}, strings.Fields(args)...)...); r.code != 0 || r.out != want {
			t.Errorf("logs %s: %+v, want %q", args, r, want)
		}
	}
	for args, want := range map[string]string{
		"logs train -n x": "-n N is --tail N", "logs train -n -5": "-n N is --tail N", "logs train -n 5 --tail 5": "want one of them",
		"logs train --tail -1": "want a number of lines",
		"jobs -n 3 --limit 3":  "want one of them", "slices -n 3": "a daemon has no namespaces",
		"logs train --namespace x --kubeconfig y": "no Kubernetes in it",
	} {
		if r := sluice(t, addr, "", strings.Fields(args)...); r.code != command.ExitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v, want %q", args, r, want)
		}
	}
	if r := sluice(t, addr, "", "jobs", "-n", "1", "-o", "name"); r.code != 0 || strings.Count(r.out, "\n") != 1 {
		t.Errorf("jobs -n 1: %+v", r)
	}
}

// silentAddress is one that nobody answers and nobody else gets while the test runs: its socket is bound and does not listen.
func silentAddress(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}

// TestNoDaemon: every way not to reach one has its message.
func TestNoDaemon(t *testing.T) {
	free := silentAddress(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	guarded := httptest.NewServer(api.Handler(api.Options{Service: apitest.New(), Token: "0123456789abcdef"}))
	t.Cleanup(guarded.Close)
	bare := func(u string) string { return strings.TrimPrefix(u, "http://") }
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--server", free}, command.ExitUnavailable, "no daemon answers at " + free +
			": start one with `sluice up`, or name another with --server"},
		{[]string{"--server", "nowhere"}, command.ExitUsage, "is no address"},
		{[]string{"--server", "ftp://x:1"}, command.ExitUsage, "is no address"},
		{[]string{"--server", "http://gpu.example:1", "--token", "t"}, command.ExitUsage, "not sent in the clear"},
		{[]string{"--server", "https://" + bare(plain.URL)}, command.ExitUnavailable, "does not speak TLS"},
		{[]string{"--server", secure.URL}, command.ExitFailed, "is not trusted"},
		{[]string{"--server", bare(guarded.URL)}, command.ExitFailed, "wants a token"},
		{[]string{"--server", bare(guarded.URL), "--token", "0123456789abcdef"}, command.ExitOK, ""},
		{[]string{"--server", free, "--tls-ca", "missing.pem"}, command.ExitUsage, "--tls-ca"},
	} {
		r := sluice(t, free, "", append([]string{"slices"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("%q: %+v, want exit %d and %q", c.args, r, c.code, c.want)
		}
	}
	if r := sluice(t, bare(plain.URL), "", "slices"); r.code == 0 || !strings.Contains(r.err, "talking to the daemon") {
		t.Errorf("another program's port: %+v", r)
	}
}

// TestRetry: an answer that may only have been lost is asked for again, under the same request id.
func TestRetry(t *testing.T) {
	fake := apitest.New()
	h := api.Handler(api.Options{Service: fake})
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			// The daemon accepts the job and dies before it answers.
			h.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	r := sluice(t, strings.TrimPrefix(s.URL, "http://"), fmt.Sprintf(jobFile, "one", ""), "submit", "-")
	if r.code != 0 || calls != 2 || r.out != "job one known already, nothing changed\n" {
		t.Errorf("%d calls, %+v", calls, r)
	}
}

// TestUp: the daemon starts, serves, sets its queues, and ends in order when told.
func TestUp(t *testing.T) {
	fake := apitest.New()
	dir := clitest.Tree(t, map[string]string{"queues.yml": "queues: [{name: lab, weight: 3}]", "bad.yml": "queues: [{name: lab, wieght: " +
		"3}]"})
	var events []string
	opened := func(err error) func(context.Context, daemon.Options) (*daemon.Daemon, error) {
		return func(_ context.Context, o daemon.Options) (*daemon.Daemon, error) {
			events = append(events, "open "+o.GPUs+" "+o.File.Policy+" "+o.Horizon.String())
			return &daemon.Daemon{
				Service: fake, Notes: []string{"isolation: fake"},
				Run: func(ctx context.Context) error {
					if err == nil {
						<-ctx.Done()
					}
					return err
				},
				Close: func() error { events = append(events, "close"); return nil },
			}, nil
		}
	}
	up := func(ctx context.Context, out io.Writer, open func(context.Context, daemon.Options) (*daemon.Daemon, error), args ...string) (int,
		string) {
		var errs bytes.Buffer
		code := Run(ctx, Deps{
			Args: append([]string{"up", "--data", "d", "--listen", "127.0.0.1:0"}, args...), Open: open,
			Options: session.Options{Version: "v1", Out: out, Err: &errs, Getenv: func(string) string { return "" }},
		})
		return code, errs.String()
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	go func() {
		buf := make([]byte, 4096)
		for text := ""; ; {
			n, err := r.Read(buf)
			if text += string(buf[:n]); strings.Contains(text, "isolation: fake\n") || err != nil {
				if !strings.HasPrefix(text, "sluice up serves on 127.0.0.1:") || !strings.Contains(text, ", data in d, version v1\n") {
					t.Errorf("it says %q", text)
				}
				cancel()
				_, _ = io.Copy(io.Discard, r)
				return
			}
		}
	}()
	code, said := up(ctx, w, opened(nil), "--gpus", "sim", "--policy", "fifo", "--config", filepath.Join(dir, "queues.yml"))
	w.Close()
	if code != 0 || fmt.Sprint(events) != "[open sim fifo 1h0m0s close]" ||
		!strings.Contains(fmt.Sprint(fake.Calls()), "queue {Name:lab Weight:3") {
		t.Errorf("exit %d %s, events %q, calls %q", code, said, events, fake.Calls())
	}

	events = nil
	broken := errkind.Errorf(errkind.Corrupt, "record 7 is damaged")
	if code, said := up(t.Context(), io.Discard, opened(broken)); code != command.ExitFailed ||
		!strings.Contains(said, "record 7 is damaged") || len(events) != 2 {
		t.Errorf("a daemon that stops by itself: exit %d %s, events %q", code, said, events)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--config", filepath.Join(dir, "bad.yml")}, `did you mean "weight"?`},
		{[]string{"--config", "missing.yml"}, "no such file"},
		{[]string{"--horizon", "0"}, "--horizon 0s: want at least 1s"},
		{[]string{"--listen", "0.0.0.0:0"}, "give --tls-cert and --tls-key"},
	} {
		if code, said := up(t.Context(), io.Discard, opened(nil), c.args...); code != command.ExitUsage || !strings.Contains(said, c.want) {
			t.Errorf("%q: exit %d %s, want %q", c.args, code, said, c.want)
		}
	}
}

// TestRun: what was typed becomes a job that is submitted and waited for; no directory goes along unless it is named.
func TestRun(t *testing.T) {
	fake := apitest.New()
	addr := answering(t, fake)
	dir := clitest.Tree(t, map[string]string{"work.sh": "#!/bin/sh"})
	t.Chdir(dir)
	r := sluice(t, addr, "", "run", "--items", "10", "--per-item", "1s", "--mem", "1Gi", "--name", "one", "--detach", "-o", "name", "--",
		"work", "--items", "3")
	if r.code != 0 || r.out != "one\n" || fake.Workdir() != nil {
		t.Errorf("%+v, %d bytes along", r, len(fake.Workdir()))
	}
	r = sluice(t, addr, "", "run", "--items", "10", "--per-item", "1s", "--mem", "1Gi", "--name", "two", "--dir", ".", "--timeout", "1ms",
		"--quiet", "./work.sh")
	if got := clitest.Entries(t, fake.Workdir()); r.code != command.ExitTimeout ||
		!slices.Equal(got, []string{"0 600 work.sh #!/bin/sh"}) {
		t.Errorf("%+v, %q along", r, got)
	}
	if j, err := fake.Job(t.Context(), "one"); err != nil || !slices.Equal(j.Spec.Launch.Command, []string{"work", "--items", "3"}) ||
		j.Spec.Total != 10 {
		t.Errorf("%+v, %v", j.Spec, err)
	}
}

// TestStopWhen: what the flags say stands in the job file, and all that is wrong with them is said at once.
func TestStopWhen(t *testing.T) {
	t.Chdir(clitest.Tree(t, map[string]string{"in.txt": "a\nb\n"}))
	call := func(more ...string) result {
		all := append([]string{"sweep", "--mem", "1Gi", "--grid", "x=1..9", "--print"}, more...)
		return sluice(t, "127.0.0.1:1", "", append(all, "--", "work", "{x}")...)
	}
	r := call("--stop-when", "hopeless", "--goal", "maximize", "--from-step", "7")
	if r.code != 0 || !strings.Contains(r.out, "goal: maximize") || !strings.Contains(r.out, "from: 7") ||
		!strings.Contains(r.out, "reduction: 3") {
		t.Errorf("%+v", r)
	}
	for want, flags := range map[string][]string{
		`--goal "": say`:                          {"--stop-when", "hopeless"},
		`"never": there is only hopeless`:         {"--stop-when", "never", "--goal", "up"},
		`--goal "up": say`:                        {"--stop-when", "never", "--goal", "up"},
		"add --stop-when hopeless":                {"--goal", "minimize"},
		"--from-step say how trials are stopped":  {"--reduction", "4"},
		`reduction: is "17"; want a whole number`: {"--stop-when", "hopeless", "--goal", "minimize", "--reduction", "17"},
	} {
		if r := call(flags...); r.code != command.ExitUsage && r.code != command.ExitFailed || !strings.Contains(r.err, want) {
			t.Errorf("%v: %+v, want %q", flags, r, want)
		}
	}
}

// TestReplace: every command that makes a job of a command line takes the place of one that is over, and of no other.
func TestReplace(t *testing.T) {
	t.Chdir(clitest.Tree(t, map[string]string{"in.txt": "a\nb\n"}))
	for verb, args := range map[string][]string{
		"run":   {"--items", "10"},
		"map":   {"--input", "in.txt", "--output", "out"},
		"sweep": {"--grid", "x=1,2"},
		"train": {"--checkpoint-dir", "ckpt", "--steps", "9"},
	} {
		t.Run(verb, func(t *testing.T) {
			fake := apitest.New()
			addr := answering(t, fake)
			fake.Set(status.Job{Name: "over", State: job.Finished, Spec: &job.Spec{}})
			fake.Set(status.Job{Name: "runs", State: job.Waiting, Spec: &job.Spec{}})
			call := func(more ...string) result {
				all := append(append([]string{verb, "--mem", "1Gi", "--detach"}, args...), more...)
				return sluice(t, addr, "", append(all, "--", "work", "{x}")...)
			}
			if r := call("--name", "over"); r.code != command.ExitFailed || !strings.Contains(r.err, "exists already") {
				t.Errorf("another job of that name: %+v", r)
			}
			if r := call("--name", "over", "--replace"); r.code != 0 || !strings.Contains(r.out, "job over accepted") {
				t.Errorf("in its place: %+v", r)
			}
			if r := call("--name", "runs", "--replace"); r.code == 0 || !strings.Contains(r.err, "is not over") {
				t.Errorf("one that runs: %+v", r)
			}
			if r := call("--replace"); r.code != command.ExitUsage || !strings.Contains(r.err, "give the other's, with --name") {
				t.Errorf("no name: %+v", r)
			}
		})
	}
}

// TestInit: a file that is there stays as it is, unless it is to be overwritten.
func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	if r := sluice(t, "127.0.0.1:1", "", "init", "steps"); r.code != 0 || !strings.Contains(r.out, "job.yaml written") {
		t.Errorf("%+v", r)
	}
	before, err := os.ReadFile("job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if r := sluice(t, "127.0.0.1:1", "", "init"); r.code != command.ExitFailed || !strings.Contains(r.err, "--force") {
		t.Errorf("%+v", r)
	}
	if after, err := os.ReadFile("job.yaml"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("overwritten (%v)", err)
	}
	if r := sluice(t, "127.0.0.1:1", "", "init", "--force", "-o", "json"); r.code != 0 || !strings.Contains(r.out, `"kind": "items"`) {
		t.Errorf("%+v", r)
	}
	if r := sluice(t, "127.0.0.1:1", "", "init", "rigid", "--file", "-"); r.code != 0 || !strings.Contains(r.out, "name: my-rigid") {
		t.Errorf("%+v", r)
	}
}

// TestTheSubmittersUmaskGoesAlong unless the job file names one.
func TestTheSubmittersUmaskGoesAlong(t *testing.T) {
	fake := apitest.New()
	addr := answering(t, fake)
	for name, more := range map[string]string{"mine": "", "named": `, umask: "0o077"`} {
		in := strings.NewReader(fmt.Sprintf(jobFile, name, more))
		if code := Run(t.Context(), Deps{Args: []string{"submit", "-"}, Options: session.Options{In: in, Out: io.Discard, Err: io.Discard,
			Patience: -1, Umask: job.Umask{Named: true, Bits: 0o027},
			Getenv: func(k string) string { return map[string]string{"SLUICE_SERVER": addr}[k] }}}); code != 0 {
			t.Fatalf("%s: exit %d", name, code)
		}
	}
	for name, want := range map[job.ID]uint16{"mine": 0o027, "named": 0o077} {
		if j, err := fake.Job(t.Context(), name); err != nil || j.Spec.Launch.Umask != (job.Umask{Named: true, Bits: want}) {
			t.Errorf("%s: %+v, %v, want %03o", name, j.Spec, err, want)
		}
	}
	if r := sluice(t, addr, fmt.Sprintf(jobFile, "bad", `, umask: "088"`), "submit", "-"); r.code != command.ExitUsage ||
		!strings.Contains(r.err, `umask: is "088"; want an umask in octal`) {
		t.Errorf("%+v", r)
	}
}

// TestInitLike: a program's files are written whole or not at all, and only a program that is known has some.
func TestInitLike(t *testing.T) {
	t.Chdir(t.TempDir())
	init := func(args ...string) result { return sluice(t, "127.0.0.1:1", "", append([]string{"init"}, args...)...) }
	r := init("--like", "gromax")
	if r.code != command.ExitUsage || !strings.Contains(r.err, "gromacs") || !strings.Contains(r.err, "lammps") {
		t.Errorf("an unknown program: %+v", r)
	}
	if r = init("steps", "--like", "gromacs"); r.code != command.ExitUsage {
		t.Errorf("a kind and a program: %+v", r)
	}
	if err := os.WriteFile("gromacs.sh", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = init("--like", "gromacs")
	_, err := os.Stat("job.yaml")
	if r.code != command.ExitFailed || !strings.Contains(r.err, "gromacs.sh: there already, and nothing was written") || err == nil {
		t.Errorf("beside a file of mine: %+v, job.yaml: %v", r, err)
	}
	if r := init("--like", "gromacs", "--force"); r.code != 0 || !strings.Contains(r.out, "gromacs.sh, job.yaml written") {
		t.Errorf("by force: %+v", r)
	}
	if text, err := os.ReadFile("gromacs.sh"); err != nil || !strings.HasPrefix(string(text), "#!/bin/sh") {
		t.Errorf("%q: %v", text, err)
	}
	if r := init("--like", "lammps", "--force"); r.code != 0 {
		t.Errorf("another: %+v", r)
	}
	if info, err := os.Stat("lammps.sh"); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the wrapper is no program: %v %v", info, err)
	}
}
