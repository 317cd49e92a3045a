//go:build kubernetes

package kubernetes

import (
	"cmp"
	"errors"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/store"
)

// Options of Open. Client, Store, Operator, ShimImage and Deliver are required; the rest has defaults.
type Options struct {
	// Client calls the API server. Its rate limit is its maker's choice.
	Client kubernetes.Interface
	// Store holds work directories, outputs and checkpoints; it must be a store.Lender. The executor does not close it.
	Store store.Store
	// Operator labels its Pods: a DNS label of at most cluster.LongestName characters.
	Operator string
	// Journal is the name of the journal that makes the tokens: a-z and 0-9, at most cluster.LongestJournal; empty for one from before
	// journals had names. A Pod of this operator with another journal is a stranger: it is ended and removed.
	Journal string
	// Key is the journal's secret, which seals the Pods' records, and Made when it was made: only Pods older than that are trusted without
	// a seal. Empty: all are. A Pod of another journal that is younger than Made is no leftover: somebody else works under this name, and
	// it is left alone.
	Key  []byte
	Made time.Time
	// ShimImage is an image with /sluice-shim, built with the tag kubernetes.
	ShimImage string
	// Namespace is for Pods of jobs that have none in their ID. Default "default".
	Namespace string
	// Deliver gets every answer, one at a time, in another goroutine than Do's.
	Deliver func(protocol.Message)
	// Slice looks a slice up; its Device is the text of a cluster.Device.
	Slice func(job.SliceID) (protocol.Slice, bool)
	// Tolerations of Pods made from now on, such as for machines tainted for GPU work; nil: none.
	Tolerations func() []corev1.Toleration
	// Vigil is what Pods do without this operator.
	Vigil Vigil
	// RunAs is the user and group ID of subjobs. Default 65532.
	RunAs int64
	// Requests and Limits of cpu, memory and ephemeral-storage of each of our containers, beside the device. Requests default to 100m and
	// 128Mi, so that a Pod is not the first to be evicted and quotas of these admit it; empty but not nil: none. Limits default to none.
	Requests, Limits corev1.ResourceList
	// Linger is how long storing may take after a lease's end, Skew how far the machines' clocks may differ. Until both have passed a
	// subjob that is not heard of counts as running. Default 1 min and 30 s.
	Linger, Skew time.Duration
	// Report is the interval of progress reports. Default 2 s.
	Report time.Duration
	// LogLimit and OutputLimit are defaults for jobs that give none, WorkdirLimit bounds an unpacked work directory; all in bytes.
	// Default 16 MiB, 4.75 GiB and 1 GiB. OutputLimit is at most what one presigned PUT takes (5 GiB), less tar's own overhead.
	LogLimit, OutputLimit, WorkdirLimit int64
	// Parallel bounds concurrent calls to the API server. Default 64.
	Parallel int
	// KeepSettled is how many settled subjobs are remembered, so that a late Start does not run them again. Default 10000.
	KeepSettled int
	// Clock is the time source; nil: time.Now.
	Clock func() time.Time
	Log   *slog.Logger
}

// Vigil is how long Pods wait for a word of their operator.
type Vigil struct {
	// Ownerless is for how long the Pod of a subjob on a slice goes on without one, and how long it then has to yield; nil: to its lease's
	// end.
	Ownerless func(job.SliceID) (limit, notice time.Duration)
	// Beat is how often Pods hear of the operator now. Default a sixth of departure.Ownerless.
	Beat func() time.Duration
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
		return nil, errkind.Errorf(errkind.Unsupported,
			"store %s can't lend objects to others (presigned URLs), which Pods need: use one of kind s3", o.Store)
	case !name:
		return nil, errkind.Errorf(errkind.Invalid, "operator %q, journal %q: want names of a-z, 0-9 and -, of at most %d and %d "+
			"characters", o.Operator, o.Journal, cluster.LongestName, cluster.LongestJournal)
	}
	o.defaults()
	return lender, nil
}

func (o *Options) defaults() {
	o.Namespace = cmp.Or(o.Namespace, "default")
	o.RunAs = cmp.Or(o.RunAs, 65532)
	o.Linger = cmp.Or(o.Linger, time.Minute)
	o.Skew = cmp.Or(o.Skew, 30*time.Second)
	o.Report = cmp.Or(o.Report, 2*time.Second)
	o.LogLimit = cmp.Or(o.LogLimit, 16<<20)
	o.OutputLimit = cmp.Or(o.OutputLimit, mostOutput)
	o.OutputLimit = min(o.OutputLimit, mostOutput)
	o.WorkdirLimit = cmp.Or(o.WorkdirLimit, 1<<30)
	o.Parallel = cmp.Or(o.Parallel, 64)
	o.KeepSettled = cmp.Or(o.KeepSettled, 10000)
	if o.Requests == nil {
		o.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	}
	if o.Slice == nil {
		o.Slice = func(job.SliceID) (protocol.Slice, bool) { return protocol.Slice{}, false }
	}
	if o.Tolerations == nil {
		o.Tolerations = func() []corev1.Toleration { return nil }
	}
	if o.Vigil.Beat == nil {
		o.Vigil.Beat = func() time.Duration { return departure.Ownerless / pod.Beats }
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// keysName is the name of the Secret with the keys, in every namespace.
func (o *Options) keysName() string { return cluster.KeysName(o.Operator) }

// now is the time by Clock.
func (o *Options) now() quantity.Instant { return quantity.At(o.Clock()) }

// mostOutput is the default and the most of Options.OutputLimit: the store would refuse a larger output only after the work is done.
const mostOutput = store.MaxLent - 256<<20

// ParseResources parses cpu=100m,memory=128Mi,ephemeral-storage=1Gi; empty text gives an empty list, not nil. Errors are of kind Invalid
// and name everything that is wrong.
func ParseResources(text string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	var errs []error
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' }) {
		name, amount, _ := strings.Cut(part, "=")
		q, err := resource.ParseQuantity(amount)
		switch n := corev1.ResourceName(name); {
		case n != corev1.ResourceCPU && n != corev1.ResourceMemory && n != corev1.ResourceEphemeralStorage:
			errs = append(errs, errkind.Errorf(errkind.Invalid, "%q: want cpu, memory or ephemeral-storage with an amount, as in cpu=100m",
				part))
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
