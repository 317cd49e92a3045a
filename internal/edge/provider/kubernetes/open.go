//go:build kubernetes

package kubernetes

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// Kubernetes is one namespace that lends Pods. Make it with Open.
type Kubernetes struct {
	o      Options
	client kubernetes.Interface
	now    func() time.Time

	mu sync.Mutex
	// making are pilots whose Submit is under way, by name.
	making map[string]bool
	// owed are tokens of pilots whose Pod may be there and whose Secret is not known to be, by name.
	owed map[string]debt
	// whole are Pods whose Secret is there.
	whole map[types.UID]bool
	// stuck are Pods that a machine has and that can't start there.
	stuck map[types.UID]trouble
	// last is what Pods were that may go without a word of how they ended.
	last map[types.UID]parting
	// ended is since when a Pod is shown as ended.
	ended map[types.UID]time.Time
	// hopeless is why no Pod of this pool can start until a person has done something, and given up when that was found; empty: one may.
	hopeless string
	givenUp  time.Time
}

// debt is a token that a Pod may lack.
type debt struct {
	token string
	since time.Time
}

// trouble is since when a Pod can't start, and why no other Pod would either; empty: another may.
type trouble struct {
	since time.Time
	ours  string
}

// parting is what a Pod was that is gone, or is about to be: what its kubelet does last, nobody sees.
type parting struct {
	seen provider.Seen
	// gone is when a look did not show it any more; zero: each has.
	gone time.Time
}

// Open makes one; it asks nothing yet. Errors: Invalid with all that is wrong, or for a cluster that is named wrongly.
func Open(o Options) (provider.Provider, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errkind.Errorf(errkind.Invalid, "kubernetes: no cluster is known here: name its file by key kubeconfig (%w)", err)
	}
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "kubernetes: kubeconfig: %w", err)
	}
	return Connect(c, o)
}

// Connect is Open by a configuration of a client.
func Connect(c *rest.Config, o Options) (*Kubernetes, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c = rest.CopyConfig(c)
	c.QPS, c.UserAgent, c.WarningHandler = -1, "sluice-pilots", rest.NoWarnings{}
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "kubernetes: kubeconfig: %w", err)
	}
	return connected(client, o), nil
}

// connected is one by a client. The options are checked.
func connected(client kubernetes.Interface, o Options) *Kubernetes {
	return &Kubernetes{o: o, client: client, now: time.Now, making: map[string]bool{}, owed: map[string]debt{},
		whole: map[types.UID]bool{}, stuck: map[types.UID]trouble{}, last: map[types.UID]parting{}, ended: map[types.UID]time.Time{}}
}

// Describe implements provider.Provider.
func (k *Kubernetes) Describe() string { return k.o.describe() }

// Close implements provider.Provider. Pilots go on.
func (k *Kubernetes) Close() error { return nil }

// margin is how long before the kubelet's SIGKILL a pilot's daemon has ended.
const margin = 5 * time.Second

// podPrefix begins the names of Pods and Secrets.
const podPrefix = "sluice-"

// describe is the provider for people.
func (o *Options) describe() string {
	text := "kubernetes: namespace " + o.Namespace + ", image " + o.Image
	for _, name := range slices.Sorted(maps.Keys(o.Resources)) {
		text += ", " + name + ":" + o.Resources[name]
	}
	return text
}
