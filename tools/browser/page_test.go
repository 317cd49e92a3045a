package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The page and the command that it is held against, as make builds them.
const (
	folder  = "../../dist/forecast"
	command = "../../bin/sluice"
)

// question is what is asked of the page and of the command alike.
type question struct {
	name  string
	files []string
	// fields of the page, which are flags of the command; jobs is a file.
	fields map[string]string
	jobs   string
	quick  bool
	// picked: the files come through the input and are not dropped.
	picked bool
	// cores is how many the page takes the machine to have; 0: as many as it has. With more than one it plays in helpers, a worker each.
	cores int
}

// ask asks the command in the form -o json or as a page. It is given the files by their names, from their folder.
func (q *question) ask(t *testing.T, form ...string) (out, err string, code int) {
	t.Helper()
	program, fail := filepath.Abs(command)
	if fail != nil {
		t.Fatal(fail)
	}
	var args []string
	at := t.TempDir()
	name := func(path string) string { // one folder holds them all, as the browser knows names alone
		link := filepath.Join(at, filepath.Base(path))
		if fail := os.Symlink(path, link); fail != nil && !os.IsExist(fail) {
			t.Fatal(fail)
		}
		return filepath.Base(path)
	}
	for _, path := range q.files {
		args = append(args, name(path))
	}
	for field, value := range q.fields {
		args = append(args, "--"+field+"="+value)
	}
	if q.jobs != "" {
		args = append(args, "--jobs", name(q.jobs))
	}
	if q.quick {
		args = append(args, "--quick")
	}
	cmd := exec.Command(program, slices.Concat([]string{"forecast"}, args, form)...)
	cmd.Dir = at
	var said, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &wrong
	fail = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("%v: build it with make build", fail)
	}
	return said.String(), wrong.String(), cmd.ProcessState.ExitCode()
}

// fill gives the page the question.
func (q *question) fill(b *tab) {
	b.Helper()
	if q.cores > 0 {
		b.eval(fmt.Sprintf(`Object.defineProperty(navigator, "hardwareConcurrency", {get: () => %d}); ""`, q.cores))
	}
	if q.picked {
		b.choose("pick", q.files...)
		b.until(fmt.Sprintf(`document.querySelectorAll("#files li").length === %d`, len(q.files)))
	} else {
		b.drop(q.files...)
	}
	for field, value := range q.fields {
		b.must(chromedp.Do(b.ctx, chromedp.SendKeys(chromedp.CSS("#"+field), value)))
	}
	if q.jobs != "" {
		b.choose("jobs", q.jobs)
	}
	if q.quick {
		b.click("quick")
	}
}

// ended is true when an answer or an error is there.
const ended = `!document.getElementById("answer").hidden || document.getElementById("wrong").textContent !== ""`

// counting has the page count its frames, as whoever looks at it sees them.
const counting = `(() => {
	window.frames_ = 0;
	const count = () => { window.frames_++; requestAnimationFrame(count) };
	requestAnimationFrame(count);
	return "";
})()`

// TestForecastPage: the page answers what the command answers, to the last digit and without a network.
func TestForecastPage(t *testing.T) {
	ctx := start(t)
	index, err := filepath.Abs(filepath.Join(folder, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(index); err != nil {
		t.Fatalf("%v: build it with make forecast-page", err)
	}
	file := "file://" + index
	m := made{t, t.TempDir()}
	accounting, nodes := m.slurm()
	slurm := question{name: "slurm", files: []string{accounting, nodes}, fields: map[string]string{"zone": "Europe/Berlin"}, quick: true}
	swf := question{name: "swf", files: []string{m.swf()}, fields: map[string]string{"grace": "2m"}, jobs: m.backlog(), picked: true,
		cores: 1}
	shared := swf
	shared.cores = 3
	crowd := slurm
	crowd.cores = 20
	questions := []question{
		slurm,
		swf,
		{name: "table", files: []string{m.table()}, fields: map[string]string{"gpus": "16", "days": "3"}, quick: true},
	}
	if data := os.Getenv("SLUICE_DATA"); data != "" {
		if data, err = filepath.Abs(data); err != nil {
			t.Fatal(err)
		}
		questions = append(questions,
			question{name: "philly", files: []string{filepath.Join(data, "philly/philly_sep-oct.csv.gz")},
				fields: map[string]string{"gpus": "800"}, quick: true},
			question{name: "hpc2n", files: []string{filepath.Join(data, "swf/hpc2n.swf.gz")}, quick: true})
	}
	for _, q := range questions {
		t.Run(q.name, func(t *testing.T) { same(t, open(t, ctx, file), file, q) })
	}
	if len(questions) == 3 {
		t.Run("published", func(t *testing.T) { t.Skip("SLUICE_DATA is not set: no published logs are asked of") })
	}
	t.Run("served", func(t *testing.T) {
		server := httptest.NewServer(http.FileServer(http.Dir(folder)))
		b := open(t, ctx, server.URL+"/")
		server.Close()
		same(t, b, server.URL+"/", shared)
	})
	t.Run("cancel", func(t *testing.T) { cancels(t, open(t, ctx, file), crowd) })
	t.Run("dies", func(t *testing.T) { dies(t, ctx, file, shared) })
	t.Run("wrong", func(t *testing.T) {
		notes := m.file("notes.txt", "what is this?\n")
		wrong(t, open(t, ctx, file), question{files: []string{notes}})
		wrong(t, open(t, ctx, file), question{files: []string{accounting, m.swf()}})
		wrong(t, open(t, ctx, file), question{files: []string{nodes}})
		wrong(t, open(t, ctx, file), question{files: []string{m.swf()}, fields: map[string]string{"grace": "soon"}})
		wrong(t, open(t, ctx, file), question{files: []string{m.swf()}, fields: map[string]string{"grace": "3h"}})
		wrong(t, open(t, ctx, file), question{files: []string{m.swf()}, fields: map[string]string{"zone": "Mars/Base"}})
		wrong(t, open(t, ctx, file), question{files: []string{m.swf()}, jobs: notes})
	})
	t.Run("sends nothing", func(t *testing.T) { sendsNothing(t, ctx, file) })
	t.Run("named", func(t *testing.T) { named(t, open(t, ctx, file)) })
}

// same holds the page's answer and picture against the command's. The page is drawn and hears its user while it works.
func same(t *testing.T, b *tab, address string, q question) {
	picture := filepath.Join(t.TempDir(), "forecast.html")
	want, says, code := q.ask(t, "-o", "json", "--html", picture)
	if code != 0 {
		t.Fatalf("the command ends with %d: %s", code, says)
	}
	html, err := os.ReadFile(picture)
	b.must(err)
	b.offline()
	q.fill(b)
	b.eval(counting)
	b.key("ask", kb.Enter)
	b.until(`document.getElementById("step").textContent.includes(" runs") || ` + ended)
	b.eval(`(() => { window.frames_ = 0; return "" })()`)
	b.must(chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("summary"))))
	busy := b.eval(`String(document.querySelector("details").open && !document.getElementById("cancel").disabled)`)
	b.until(ended)
	if wrong := b.text("wrong"); wrong != "" {
		t.Fatal(wrong)
	}
	frames, err := strconv.Atoi(b.eval("String(window.frames_)"))
	b.must(err)
	if busy != "true" || frames < 10 {
		t.Errorf("a click while it worked was heard: %s; %d frames were drawn meanwhile", busy, frames)
	}
	var answer struct{ Says string }
	b.must(json.Unmarshal([]byte(want), &answer))
	if status := b.text("status"); !strings.HasPrefix(status, "Done in ") || !strings.HasSuffix(status, ". "+answer.Says) {
		t.Errorf("the status says %q", status)
	}
	if focus := b.eval("document.activeElement.id"); focus != "heading" {
		t.Errorf("the focus is at %q, not at the answer", focus)
	}
	t.Logf("%s; %d frames", b.text("status"), frames)
	if got := b.save("json"); got != want {
		t.Errorf("the page's answer is another than the command's:\n%s\n%s", got, want)
	}
	if got := b.save("page"); got != string(html) {
		t.Error("the page that is saved is another than that of --html")
	}
	if shown := b.eval(`document.getElementById("shown").contentDocument.querySelector("h1").textContent`); shown != answer.Says {
		t.Errorf("the page shows %q", shown)
	}
	if out := b.foreign(address); len(out) > 0 {
		t.Errorf("the page asked for %v", out)
	}
	b.alone()
	if to := os.Getenv("SLUICE_SCREENSHOTS"); to != "" {
		shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		b.must(err)
		b.must(os.WriteFile(filepath.Join(to, q.name+".png"), shot, 0o600))
	}
}

// cancels: a run that is cancelled is over at once, and the next answers as if it had not been.
func cancels(t *testing.T, b *tab, q question) {
	b.offline()
	q.fill(b)
	b.click("ask")
	b.until(`document.getElementById("step").textContent.includes(" runs") || ` + ended)
	if n := b.workers(); n != 1+8 {
		t.Errorf("%d workers live while it plays, want one and its helpers, of which there are at most 8", n)
	}
	b.key("cancel", kb.Enter)
	if status := b.text("status"); status != "Cancelled." {
		t.Errorf("the status says %q", status)
	}
	b.alone()
	if b.eval(`String(document.getElementById("answer").hidden && document.getElementById("progress").hidden)`) != "true" {
		t.Error("there is an answer, or progress")
	}
	want, _, _ := q.ask(t, "-o", "json")
	b.click("ask")
	b.until(ended)
	if got := b.save("json"); got != want {
		t.Errorf("behind a cancelled run the answer is another: %s%s", got, b.text("wrong"))
	}
}

// dies: where a helper fails the page says so in place of an answer, without waiting for it, and can be asked again.
func dies(t *testing.T, ctx context.Context, file string, q question) {
	for _, c := range []struct{ name, plant, says string }{
		{"its script fails", `throw new Error("planted")`, "planted"},
		{"there is no memory for it", `WebAssembly.instantiate = async () => { throw new RangeError("out of memory") }`,
			"more memory than a page can have"},
		{"its program ends", `Go.prototype.run = async () => {}`, "it ended without an answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t, ctx, file)
			b.offline()
			q.fill(b)
			b.eval(fmt.Sprintf(`(() => {
				const worker = document.getElementById("worker");
				window.whole = worker.textContent;
				worker.textContent = "addEventListener('message', ({ data }) => { if (data.port) { %%s } });".replace("%%s", () => %q) +
					worker.textContent;
				return "";
			})()`, c.plant))
			b.click("ask")
			b.until(ended)
			if said := b.text("wrong"); !strings.Contains(said, c.says) {
				t.Errorf("the page says %q, want %q", said, c.says)
			}
			b.alone()
			b.eval(`document.getElementById("worker").textContent = window.whole`)
			b.click("ask")
			b.until(`document.getElementById("step").textContent.includes(" runs") || ` + ended)
			if said := b.text("wrong"); said != "" {
				t.Errorf("asked again it says %q", said)
			}
			b.click("cancel")
			b.alone()
		})
	}
}

// wrong: what the command refuses the page refuses with the command's words, and then it can be asked again.
func wrong(t *testing.T, b *tab, q question) {
	b.offline()
	_, says, code := q.ask(t)
	if code == 0 {
		t.Fatalf("the command answers %v", q)
	}
	q.fill(b)
	b.click("ask")
	b.until(ended)
	said := b.text("wrong")
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") } // the command indents all lines but the first
	if said == "" || !strings.Contains(flat(says), flat(said)) {
		t.Errorf("the page says %q, the command %q", said, says)
	}
	if b.eval(`String(document.getElementById("ask").disabled)`) != "false" || b.text("status") != "No answer." {
		t.Errorf("it can't be asked again: %q", b.text("status"))
	}
}

// sendsNothing: neither the page nor a worker of it reaches a server that is there.
func sendsNothing(t *testing.T, ctx context.Context, file string) {
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		asked <- r.URL.Path
	}))
	defer server.Close()
	b := open(t, ctx, file)
	for _, try := range []string{
		`fetch("URL/fetch", {mode: "no-cors"}).then(() => "sent", () => "refused")`,
		`new Promise(done => {
			const x = new Image(); x.onload = () => done("sent"); x.onerror = () => done("refused"); x.src = "URL/image" })`,
		`new Promise(done => { const x = new WebSocket("URL/socket".replace("http", "ws"));
			x.onopen = () => done("sent"); x.onerror = () => done("refused") }).catch(() => "refused")`,
		`new Promise(done => {
			const text = 'fetch("URL/worker", {mode: "no-cors"}).then(() => postMessage("sent"), () => postMessage("refused"))';
			const w = new Worker(globalThis.URL.createObjectURL(new Blob([text])));
			w.onmessage = e => done(e.data);
		})`,
		`new Promise(done => { const x = document.createElement("script"); x.onload = () => done("sent"); x.onerror = () => done("refused");
			x.src = "URL/script"; document.body.append(x) })`,
	} {
		if got := b.eval(strings.ReplaceAll(try, "URL/", server.URL+"/")); got != "refused" {
			t.Errorf("%s: %s", try, got)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the server was asked for %s", <-asked)
	}
}

// named: whoever hears the page is told what each part of it is for.
func named(t *testing.T, b *tab) {
	roles := b.roles()
	for role, least := range map[string]int{"button": 2, "textbox": 1, "combobox": 1, "spinbutton": 1, "checkbox": 2, "heading": 1,
		"status": 1, "alert": 0, "main": 1} {
		names := roles[role]
		if len(names) < least {
			t.Errorf("%d of role %s, want %d: %v", len(names), role, least, roles)
		}
		if slices.Contains(names, "") && role != "status" && role != "main" && role != "alert" {
			t.Errorf("a %s has no name: %q", role, names)
		}
	}
}
