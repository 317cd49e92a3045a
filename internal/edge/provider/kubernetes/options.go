package kubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// Defaults of Options.
const (
	DefaultTimeout       = 20 * time.Second
	DefaultGrace         = 30 * time.Second
	DefaultPriorityClass = "sluice-pilots"
	DefaultUser          = 65532
)

// Step is the unit of a pilot's length.
const Step = time.Minute

// LeastGrace leaves a pilot some seconds to checkpoint before its hand-over, and margin.
const LeastGrace = 20 * time.Second

// Options of a Kubernetes. Mark, Pool, Namespace, Image and SluiceImage are needed.
type Options struct {
	// Mark tells this daemon's pilots from all else in the namespace: [a-z0-9]{4,16}. Pool is which of its pools they are of.
	Mark, Pool string
	// Kubeconfig is a file, Context one of its contexts; empty: KUBECONFIG, ~/.kube/config, or the account of the Pod that this runs in.
	Kubeconfig, Context string
	// Timeout of each call; 0: DefaultTimeout.
	Timeout time.Duration

	// Namespace that Pods are made in.
	Namespace string
	// Image is what the work runs in. SluiceImage has /sluice and /sluice-shim, the latter built with the tag kubernetes.
	Image, SluiceImage string
	// Resources of the pilot's container, requested and limited alike, such as nvidia.com/mig-1g.10gb: 1.
	Resources map[string]string
	// PriorityClass of the Pods, which has to be there and never to preempt; empty: DefaultPriorityClass.
	PriorityClass string
	// NodeSelector are labels that a machine must have, Tolerates keys of taints that it may have.
	NodeSelector map[string]string
	Tolerates    []string
	// Grace is how long a Pod has from SIGTERM to SIGKILL, which is the notice of a preemption; 0: DefaultGrace.
	Grace time.Duration
	// User is the user and group ID of the work; 0: DefaultUser.
	User int64
	// GPUs is where the pilot's slices come from, as of sluice join; empty: nvml.
	GPUs string
	// Ownerless is for how long the pilot may hear nothing of its head; 0: until its end.
	Ownerless time.Duration
}

// The forms of what becomes part of names and labels.
var (
	markForm      = regexp.MustCompile(`^[a-z0-9]{4,16}$`)
	nameForm      = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	dottedForm    = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	qualifiedForm = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	valueForm     = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$`)
)

// check fills defaults in, and lists every problem. Errors: Invalid.
func (o *Options) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	o.PriorityClass = cmp.Or(o.PriorityClass, DefaultPriorityClass)
	o.Timeout, o.Grace = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.Grace, DefaultGrace)
	o.User, o.GPUs = cmp.Or(o.User, DefaultUser), cmp.Or(o.GPUs, "nvml")
	if !markForm.MatchString(o.Mark) {
		wrong("mark %q: want 4 to 16 lower-case letters and digits", o.Mark)
	}
	for _, f := range []struct {
		what, value string
		form        *regexp.Regexp
	}{{"name", o.Pool, nameForm}, {"namespace", o.Namespace, nameForm}, {"priorityClass", o.PriorityClass, dottedForm}} {
		if !f.form.MatchString(f.value) {
			wrong("%s %q: want a name as Kubernetes has them, of lower-case letters, digits and hyphens", f.what, f.value)
		}
	}
	for _, f := range []struct{ what, value string }{{"image", o.Image}, {"sluiceImage", o.SluiceImage}} {
		if f.value == "" || strings.ContainsFunc(f.value, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
			wrong("%s %q: want an image such as registry.example.com/team/train:v1", f.what, f.value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Resources)) {
		if amount := o.Resources[name]; !qualifiedForm.MatchString(name) || !provider.SoundAmount(amount) {
			wrong("resources: %s: %q: want a resource and its amount, such as nvidia.com/mig-1g.10gb: 1 or memory: 4Gi", name, amount)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.NodeSelector)) {
		if !qualifiedForm.MatchString(name) || !valueForm.MatchString(o.NodeSelector[name]) {
			wrong("nodeSelector: %s: %q: want a label of machines", name, o.NodeSelector[name])
		}
	}
	for _, key := range o.Tolerates {
		if !qualifiedForm.MatchString(key) {
			wrong("tolerates %q: want the key of a taint such as nvidia.com/gpu", key)
		}
	}
	if o.Ownerless < 0 {
		wrong("ownerless %v is negative", o.Ownerless)
	}
	if o.Grace < LeastGrace || o.Grace%time.Second != 0 {
		wrong("grace %v: want whole seconds, at least %v: %v of it are for the hand-over", o.Grace, LeastGrace, LeastGrace/2)
	}
	if o.User < 1 || o.User > 1<<31-1 {
		wrong("user %d: want a user ID that is not root's", o.User)
	}
	if strings.HasPrefix(o.GPUs, "-") || strings.ContainsAny(o.GPUs, "\x00\r\n") {
		wrong("gpus %q: want what --gpus of sluice join takes", o.GPUs)
	}
	if o.Kubeconfig != "" && !filepath.IsAbs(o.Kubeconfig) {
		wrong("kubeconfig %q: want an absolute path", o.Kubeconfig)
	}
	if o.Timeout < 0 {
		wrong("timeout %v: want none below 0", o.Timeout)
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "kubernetes: %w", err)
	}
	return nil
}
