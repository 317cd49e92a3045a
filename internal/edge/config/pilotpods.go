package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/strict"
)

// PilotPods is what each pilot of a provider of kind kubernetes is. Empty where the kind has a default.
type PilotPods struct {
	// Namespace that the Pods are in, Image what the work runs in, and SluiceImage ours, whose programs are put beside it.
	Namespace, Image, SluiceImage string
	// Resources are requested and limited alike, by name.
	Resources map[string]string
	// PriorityClass of the Pods.
	PriorityClass string
	// NodeSelector are labels that a machine must have, Tolerates keys of taints that it may have.
	NodeSelector map[string]string
	Tolerates    []string
	// Grace is how long a Pod has from its SIGTERM, User the user ID of the work.
	Grace time.Duration
	User  int64
	// Kubeconfig is a file, Context one of its contexts.
	Kubeconfig, Context string
}

// leastPilotGrace leaves what runs on a pilot some seconds before the hand-over.
const leastPilotGrace = 20 * time.Second

// namespaceForm is a DNS label.
var namespaceForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// pilotPodsOf reads the keys of kind kubernetes.
func pilotPodsOf(o strict.Object) PilotPods {
	word := func(key, want string) string { return wordOf(o.Get(key), want) }
	p := PilotPods{
		Namespace:     formed(o.Need("namespace", "team-a"), namespaceForm, "a namespace such as team-a"),
		Image:         wordOf(o.Need("image", "registry.example.com/team/train:v1"), "the image that the work runs in"),
		SluiceImage:   wordOf(o.Need("sluiceImage", "registry.example.com/sluice:v1"), "the image that has sluice and sluice-shim"),
		Resources:     amountsOf(o.Get("resources")),
		PriorityClass: word("priorityClass", "a PriorityClass such as sluice-pilots"),
		NodeSelector:  wordsOf(o.Get("nodeSelector"), "the value of a label"),
		Tolerates:     linesOf(o.Get("tolerates"), "a list of keys of taints such as [nvidia.com/gpu]"),
		Grace:         o.Get("grace").Duration(leastPilotGrace, time.Hour, 0),
		User:          o.Get("user").Integer(1, 1<<31-1, 0),
		Kubeconfig:    pathOf(o.Get("kubeconfig"), "a file such as /home/ada/.kube/config"),
		Context:       word("context", "a context of the kubeconfig"),
	}
	if p.Grace%time.Second != 0 {
		o.Get("grace").Wrong("is %s; want whole seconds", strict.FormatDuration(p.Grace))
	}
	return p
}

// slices are those of resources that are named by a MIG profile, such as nvidia.com/mig-1g.10gb; none: they do not say.
func (p *PilotPods) slices() (list []supply.Slice) {
	for _, name := range slices.Sorted(maps.Keys(p.Resources)) {
		_, device, ok := strings.Cut(name, "/")
		if profile, is := strings.CutPrefix(device, "mig-"); ok && is {
			list = append(list, slicesOfGres("gpu:"+profile+":"+p.Resources[name])...)
		}
	}
	if len(list) > maxSlices {
		return nil
	}
	return list
}
