//go:build kubernetes

package plane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is how long a part may take to be ready before the plane gives up: some 3 s on a quiet machine, and no part of a test's claim.
const patience = 3 * time.Minute

// Plane is a control plane that runs. Its methods may be called from several goroutines, but Start and Stop of one part.
type Plane struct {
	settings
	// dir has everything of this plane: certificates, configuration, etcd's data and a log of each part. assets has the programs.
	dir, assets string
	addresses   map[string]string
	ca          *authority
	admin       *rest.Config

	mu      sync.Mutex
	running map[Part]*process
	first   []func(keep bool)
}

// OnEnd has f called before the plane ends, while all of it works; keep says whether its logs will be kept.
func (p *Plane) OnEnd(f func(keep bool)) { p.first = append(p.first, f) }

// Start starts a plane that ends with the test. Without the programs the test is skipped, or fails where SLUICE_KUBE is require. The logs
// of a test that failed are kept, and it says where.
func Start(t testing.TB, options ...Option) *Plane {
	t.Helper()
	s := chosen(options)
	p, err := start(assetsFor(t, s), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t.Failed()) })
	return p
}

func assetsFor(t testing.TB, s settings) string {
	t.Helper()
	names := []string{string(kubectl)}
	for _, part := range order {
		if s.parts[part] {
			names = append(names, string(part))
		}
	}
	return demand(t, names...)
}

// start makes a plane: its folder, and then its parts in order. What has failed leaves no process, and its error has the end of the log of
// the part that failed.
func start(assets string, s settings) (_ *Plane, err error) {
	dir, err := os.MkdirTemp("", "plane-")
	if err != nil {
		return nil, err
	}
	p := &Plane{settings: s, dir: dir, assets: assets, running: map[Part]*process{}}
	defer func() {
		if err != nil {
			p.end(true)
		}
	}()
	if err = p.prepare(); err != nil {
		return nil, err
	}
	if p.admin, err = clientcmd.BuildConfigFromFlags("", p.Kubeconfig()); err != nil {
		return nil, err
	}
	p.admin.QPS = -1 // no limit on the client's side
	// Kubelets and the operator speak protobuf, so the clients that stand for them do, and those that are measured beside them.
	p.admin.ContentType, p.admin.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	for _, part := range order {
		if !p.has(part) {
			continue
		}
		if err = p.Start(part); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// end stops all parts, and removes the plane's folder unless it is to be kept.
func (p *Plane) end(keep bool) {
	for _, f := range slices.Backward(p.first) {
		f(keep)
	}
	for _, part := range slices.Backward(order) {
		if part == Etcd || part == APIServer || keep {
			p.Stop(part)
		} else {
			p.Kill(part) // nobody will ask what it had in mind
		}
	}
	if keep {
		fmt.Fprintf(os.Stderr, "plane: the logs of this plane are kept in %s\n", p.dir)
		_ = os.RemoveAll(filepath.Join(p.dir, "etcd.data"))
		return
	}
	_ = os.RemoveAll(p.dir)
}

func (p *Plane) has(part Part) bool { return p.parts[part] }

// Dir has the plane's logs, PART.log each.
func (p *Plane) Dir() string { return p.dir }

// Config is a client's configuration as an administrator, without limits of rate. To be somebody else, set Impersonate in the copy that it
// is.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.admin) }

// Client is a client with Config.
func (p *Plane) Client() kubernetes.Interface { return kubernetes.NewForConfigOrDie(p.Config()) }

// Start starts a part that does not run, and returns when it is ready. After Stop or Kill it finds what it left.
func (p *Plane) Start(part Part) error {
	p.mu.Lock()
	old := p.running[part]
	p.mu.Unlock()
	if old != nil && !old.ended() {
		return fmt.Errorf("%s runs already", part)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if part == Kueue {
		if err := p.installKueue(ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	run, err := launch(string(part), p.log(part), filepath.Join(p.assets, string(part)), p.arguments(part)...)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.running[part] = run
	p.mu.Unlock()
	if err := p.await(ctx, part, run); err != nil {
		run.end(0)
		return fmt.Errorf("%s: %w; its log ends with:\n%s", part, err, tail(p.log(part), 25))
	}
	return nil
}

func (p *Plane) log(part Part) string { return filepath.Join(p.dir, string(part)+".log") }

// Stop ends a part as an upgrade would, with SIGTERM; Kill ends it as a lost machine would. Both return when it is gone.
func (p *Plane) Stop(part Part) { p.terminate(part, time.Minute) }

// Kill is Stop with SIGKILL.
func (p *Plane) Kill(part Part) { p.terminate(part, 0) }

func (p *Plane) terminate(part Part, patience time.Duration) {
	p.mu.Lock()
	run := p.running[part]
	p.mu.Unlock()
	if run != nil {
		run.end(patience)
	}
}

// Usage is what a part holds of memory, in bytes, and the processor time that it has used.
type Usage struct {
	Resident, Peak int64
	CPU            time.Duration
}

// Usage reads what a running part holds and has used.
func (p *Plane) Usage(part Part) (Usage, error) {
	p.mu.Lock()
	run := p.running[part]
	p.mu.Unlock()
	if run == nil {
		return Usage{}, fmt.Errorf("%s does not run", part)
	}
	return run.usage()
}

// await returns when a part is ready, and with an error when it has ended or ctx has.
func (p *Plane) await(ctx context.Context, part Part, run *process) error {
	for {
		err := p.ready(ctx, part)
		if err == nil {
			return nil
		}
		select {
		case <-run.done:
			return fmt.Errorf("it has ended: %w", run.err)
		case <-ctx.Done():
			return fmt.Errorf("not ready after %s: %w", patience, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ready asks a part whether it works.
func (p *Plane) ready(ctx context.Context, part Part) error {
	switch part {
	case Etcd:
		return ok(ctx, "http://"+p.at("etcd")+"/readyz")
	case APIServer:
		client, err := kubernetes.NewForConfig(p.admin)
		if err != nil {
			return err
		}
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	case Scheduler, Controllers:
		return okInsecure(ctx, "https://"+p.at(string(part))+"/healthz")
	case Kwok:
		return ok(ctx, "http://"+p.at(string(part))+"/healthz")
	case Kueue:
		if err := p.mountKueue(ctx); err != nil {
			return err
		}
		return ok(ctx, "http://"+p.at(string(part))+"/readyz")
	case kubectl:
	}
	return nil
}

// ok asks a page, and is an error unless it answers 200.
func ok(ctx context.Context, url string) error { return okWith(ctx, http.DefaultClient, url) }

func okWith(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}
