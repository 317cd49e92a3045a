package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// chromium is the browser's program. Where there is none the test is skipped, and fails under SLUICE_BROWSER=require.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	says := "there is no " + strings.Join(names, " or ") + " in the path: install one, on Debian with apt-get install chromium"
	if os.Getenv("SLUICE_BROWSER") == "require" {
		t.Fatal(says)
	}
	t.Skip(says)
	return ""
}

// start starts a browser for the whole test.
func start(t *testing.T) context.Context {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium(t)),
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 1000))
	if os.Getuid() == 0 { // Chromium refuses to run as root with its sandbox
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// tab is a page that is open in the browser.
type tab struct {
	*testing.T
	ctx       context.Context
	downloads string
	saved     chan browser.EventDownloadProgress

	mu       sync.Mutex
	requests []string
}

// patience is how long a tab may live: one that hangs says where, before the whole test is out of time.
const patience = 8 * time.Minute

// open opens an address in a new tab. What it asks for is written down; saved files go to a folder of the test.
func open(t *testing.T, from context.Context, address string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(from)
	t.Cleanup(end)
	ctx, expire := context.WithTimeout(ctx, patience)
	t.Cleanup(expire)
	b := &tab{T: t, ctx: ctx, downloads: t.TempDir(), saved: make(chan browser.EventDownloadProgress, 100)}
	b.must(chromedp.Do(ctx))
	b.must(chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.requests = append(b.requests, e.Request.URL)
		}
	}))
	b.must(chromedp.ListenBrowser(ctx, func(event any) {
		if e, ok := event.(*browser.EventDownloadProgress); ok && e.State != browser.DownloadProgressStateInProgress {
			b.saved <- *e
		}
	}))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	b.must(err)
	yes := true
	_, err = chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: b.downloads, EventsEnabled: &yes})
	b.must(err)
	b.must(chromedp.Do(ctx, chromedp.Navigate(address)))
	return b
}

// offline cuts the tab off from every network.
func (b *tab) offline() {
	b.Helper()
	none := network.Conditions{Offline: true, DownloadThroughput: -1, UploadThroughput: -1}
	_, err := chromedp.Call(b.ctx, network.EmulateNetworkConditionsByRule,
		network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{&none}})
	b.must(err)
	_, err = chromedp.Call(b.ctx, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: true, DownloadThroughput: -1,
		UploadThroughput: -1})
	b.must(err)
	if b.eval("String(navigator.onLine)") != "false" {
		b.Fatal("the tab is not offline")
	}
}

// foreign are the requests of the tab that were for anything but the page itself and what it made.
func (b *tab) foreign(address string) (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		if r != address && !strings.HasPrefix(r, "blob:") && !strings.HasPrefix(r, "data:") && !strings.HasPrefix(r, "about:") {
			out = append(out, r)
		}
	}
	return out
}

func (b *tab) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// eval is the text that an expression comes to; a promise is waited for.
func (b *tab) eval(expression string) string {
	b.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%v, of %s", err, expression)
	}
	return got
}

// until waits until an expression is true. It is looked at whenever the page changes.
func (b *tab) until(expression string) {
	b.Helper()
	b.eval(`new Promise(done => {
		const watch = new MutationObserver(() => look());
		const look = () => { if (` + expression + `) { watch.disconnect(); done("") } };
		watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
		look();
	})`)
}

// drop drops files on the page, as a hand does that drags them from a folder.
func (b *tab) drop(paths ...string) {
	b.Helper()
	where := chromedp.Evaluate[[]float64](`(() => {
		const box = document.getElementById("drop").getBoundingClientRect();
		return [box.x + box.width / 2, box.y + box.height / 2];
	})()`)
	at, err := chromedp.Run(b.ctx, where)
	b.must(err)
	data := input.DragData{Items: []*input.DragDataItem{}, Files: paths, DragOperationsMask: 1}
	for _, step := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver,
		input.DispatchDragEventTypeDrop} {
		_, err := chromedp.Call(b.ctx, input.DispatchDragEvent, input.DispatchDragEventParams{Type: step, X: at[0], Y: at[1], Data: &data})
		b.must(err)
	}
	for _, path := range paths {
		b.until(fmt.Sprintf(`document.getElementById("files").textContent.includes(%q)`, filepath.Base(path)))
	}
}

// choose gives files to an input.
func (b *tab) choose(id string, paths ...string) {
	b.Helper()
	b.must(chromedp.Do(b.ctx, chromedp.SetUploadFiles(chromedp.CSS("#"+id), paths)))
}

// key presses a key on an element.
func (b *tab) key(id, key string) {
	b.Helper()
	b.must(chromedp.Do(b.ctx, chromedp.Focus(chromedp.CSS("#"+id)), chromedp.KeyEvent(key)))
}

func (b *tab) click(id string) {
	b.Helper()
	b.must(chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("#"+id))))
}

// text is that of an element.
func (b *tab) text(id string) string {
	b.Helper()
	return b.eval(fmt.Sprintf("document.getElementById(%q).textContent", id))
}

// save presses a button that saves a file, and returns what was saved.
func (b *tab) save(id string) string {
	b.Helper()
	b.click(id)
	done := <-b.saved
	if done.State != browser.DownloadProgressStateCompleted {
		b.Fatalf("%s: the file was not saved: %s", id, done.State)
	}
	content, err := os.ReadFile(filepath.Join(b.downloads, done.GUID))
	b.must(err)
	return string(content)
}

// alone waits until no worker lives in the browser: one that is ended goes a little later. It waits by the clock: a browser may draw no
// frame of a page in which nothing changes.
func (b *tab) alone() {
	b.Helper()
	for b.workers() > 0 {
		b.eval("new Promise(done => setTimeout(() => done(''), 20))")
	}
}

// workers is how many workers live in the browser.
func (b *tab) workers() (n int) {
	b.Helper()
	all, err := chromedp.Targets(b.ctx)
	b.must(err)
	for _, target := range all {
		if target.Type == "worker" {
			n++
		}
	}
	return n
}

// roles are the names that whoever hears the page is told of its parts, by their roles.
func (b *tab) roles() map[string][]string {
	b.Helper()
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	b.must(err)
	out := map[string][]string{}
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		role, name := word(node.Role), ""
		if node.Name != nil {
			name = word(node.Name)
		}
		out[role] = append(out[role], name)
	}
	return out
}

func word(v *accessibility.Value) string { return strings.Trim(string(v.Value), `"`) }
