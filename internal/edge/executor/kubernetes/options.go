//go:build kubernetes

package kubernetes

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/store"
)

// Options of Open. Client, Store, Operator, ShimImage and Deliver are needed; the rest has defaults.
type Options struct {
	// Client speaks to the cluster. Whoever makes it says how many calls a second it may make.
	Client kubernetes.Interface
	// Store is where work directories, outputs and checkpoints lie; it must be a store.Lender. The executor does not close it.
	Store store.Store
	// Operator is the name that its Pods are found by: a DNS label of at most cluster.LongestName characters.
	Operator string
	// Journal is the journal that tokens are of: a-z and 0-9, at most cluster.LongestJournal of them; empty: one from before journals had names. A Pod of this operator and of
	// another journal is a stranger: it is ended and put away.
	Journal string
	// Key is a secret that goes with the journal, made at an instant: what Pods say of themselves is sealed with it, and believed without a seal of older ones alone. Empty: it is
	// believed as it is. A Pod of another journal that is not older is no leftover: somebody else works under this name, and it is left alone.
	Key  []byte
	Made time.Time
	// ShimImage is an image with /sluice-shim, of a build with the tag kubernetes.
	ShimImage string
	// Namespace is where Pods of jobs go that have none in their id. Default "default".
	Namespace string
	// Deliver gets every answer, one at a time and never from within Do.
	Deliver func(protocol.Message)
	// Slice describes a slice: its Device is cluster.Device as text.
	Slice func(job.SliceID) (protocol.Slice, bool)
	// Tolerations are those of every Pod that is made now, such as for machines that are kept for GPUs; nil: none.
	Tolerations func() []corev1.Toleration
	// RunAs is the user, and the group, that subjobs run as. Default 65532.
	RunAs int64
	// Requests and Limits of processor (cpu), memory and ephemeral-storage are those of each container of ours, beside its device. Requests default to 100m and 128Mi, so that a
	// Pod is not the first to be evicted, and a quota of these lets it in; empty and not nil: none. Limits default to none.
	Requests, Limits corev1.ResourceList
	// Linger is how long after its lease's end what a subjob left may take to be stored, Skew by how much the machines' clocks may differ. Until both are
	// over a subjob of which nothing is heard counts as running. Default 1 min and 30 s.
	Linger, Skew time.Duration
	// Report is the time between reports of progress. Default 2 s.
	Report time.Duration
	// LogLimit and OutputLimit are defaults for jobs that give none, SnapshotLimit bounds an unpacked work directory, in bytes: 16 MiB, 4.75 GiB and 1 GiB. OutputLimit is at most
	// what one URL takes, less room for what a tar takes beside its files.
	LogLimit, OutputLimit, SnapshotLimit int64
	// Parallel bounds the calls under way at once. Default 64.
	Parallel int
	// KeepSettled is how many ended subjobs are remembered, so that a late Start does not start them again. Default 10000.
	KeepSettled int
	// Clock is the operator's; package time's if nil.
	Clock func() time.Time
	Log   *slog.Logger
}

func (o *Options) check() (store.Lender, error) {
	lender, lends := o.Store.(store.Lender)
	name := o.Operator != "" && len(o.Operator) <= cluster.LongestName && len(o.Journal) <= cluster.LongestJournal
	for i, c := range []byte(o.Operator) {
		name = name && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' && i > 0 && i < len(o.Operator)-1)
	}
	switch {
	case o.Client == nil || o.Deliver == nil || o.Store == nil || o.ShimImage == "":
		return nil, errkind.Errorf(errkind.Invalid, "executor kubernetes: Client, Store, ShimImage and Deliver are needed")
	case !lends:
		return nil, errkind.Errorf(errkind.Unsupported, "store %s can't lend objects to others (presigned URLs), which Pods need: use one of kind s3", o.Store)
	case !name:
		return nil, errkind.Errorf(errkind.Invalid, "operator %q, journal %q: want names of a-z, 0-9 and -, of at most %d and %d characters", o.Operator, o.Journal, cluster.LongestName, cluster.LongestJournal)
	}
	o.defaults()
	return lender, nil
}

func (o *Options) defaults() {
	fill(&o.Namespace, "default")
	fill(&o.RunAs, 65532)
	fill(&o.Linger, time.Minute)
	fill(&o.Skew, 30*time.Second)
	fill(&o.Report, 2*time.Second)
	fill(&o.LogLimit, 16<<20)
	fill(&o.OutputLimit, mostOutput)
	o.OutputLimit = min(o.OutputLimit, mostOutput)
	fill(&o.SnapshotLimit, 1<<30)
	fill(&o.Parallel, 64)
	fill(&o.KeepSettled, 10000)
	if o.Requests == nil {
		o.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	}
	if o.Slice == nil {
		o.Slice = func(job.SliceID) (protocol.Slice, bool) { return protocol.Slice{}, false }
	}
	if o.Tolerations == nil {
		o.Tolerations = func() []corev1.Toleration { return nil }
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// mostOutput is how much a subjob may leave that says nothing of that: what is more is refused by the store only once all was done.
const mostOutput = store.MaxLent - 256<<20

func fill[T comparable](field *T, otherwise T) {
	var zero T
	if *field == zero {
		*field = otherwise
	}
}

// ParseResources reads amounts of processor, memory and disk, as in cpu=100m,memory=128Mi,ephemeral-storage=1Gi; empty: none, and not nil. Errors are of kind Invalid and name all that is wrong.
func ParseResources(text string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	var errs []error
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' }) {
		name, amount, _ := strings.Cut(part, "=")
		q, err := resource.ParseQuantity(amount)
		switch n := corev1.ResourceName(name); {
		case n != corev1.ResourceCPU && n != corev1.ResourceMemory && n != corev1.ResourceEphemeralStorage:
			errs = append(errs, errkind.Errorf(errkind.Invalid, "%q: want cpu, memory or ephemeral-storage with an amount, as in cpu=100m", part))
		case err != nil || q.Sign() <= 0:
			errs = append(errs, errkind.Errorf(errkind.Invalid, "%q: want an amount above 0, such as 100m of cpu or 128Mi of memory", part))
		default:
			if _, twice := list[n]; twice {
				errs = append(errs, errkind.Errorf(errkind.Invalid, "%q: %s is there twice", part, name))
			}
			list[n] = q
		}
	}
	return list, errors.Join(errs...)
}
