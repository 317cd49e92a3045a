// Package all is the table of the kinds of provider, and how one of a head's file is opened. Only the command line imports it.
package all

import (
	"os"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/kubernetes"
	"sluice.dev/sluice/internal/edge/provider/slurm"
)

// Kind is one kind of provider.
type Kind struct {
	// Name as a file has it.
	Name string
	// Open makes one of a file's. mark tells this cluster's pilots from all else at the host. Errors: Invalid for settings that can't be,
	// Unsupported where its programs are not there.
	Open func(mark string, p *config.Provider) (provider.Provider, error)
}

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{
		{Name: config.KindSlurm, Open: openSlurm},
		{Name: config.KindKubernetes, Open: openKubernetes},
	}
}

func openKubernetes(mark string, p *config.Provider) (provider.Provider, error) {
	k := &p.Pods
	return kubernetes.Open(kubernetes.Options{
		Mark: mark, Pool: p.Pool.Name, Kubeconfig: k.Kubeconfig, Context: k.Context, Namespace: k.Namespace, Image: k.Image,
		SluiceImage: k.SluiceImage, Resources: k.Resources, PriorityClass: k.PriorityClass, NodeSelector: k.NodeSelector,
		Tolerates: k.Tolerates, Grace: k.Grace, User: k.User, GPUs: p.GPUs, Ownerless: p.Ownerless,
	})
}

func openSlurm(mark string, p *config.Provider) (provider.Provider, error) {
	program := p.Sluice
	if program == "" { // the nodes have it where this machine has it
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, errkind.Errorf(errkind.Unsupported, "where is this program? say so by key sluice: %w", err)
		}
	}
	var rest *slurm.REST
	if r := p.REST; r != nil {
		rest = &slurm.REST{URL: r.URL, User: r.User, TokenFile: r.TokenFile, Version: r.Version}
	}
	return slurm.Open(slurm.Options{
		Mark: mark, Pool: p.Pool.Name, Partition: p.Partition, Gres: p.Gres, CPUs: p.CPUs, Memory: int64(p.Memory), Account: p.Account,
		QOS: p.QOS, Constraint: p.Constraint, Reservation: p.Reservation, Exclude: p.Exclude, Extra: p.Options, UserSignal: p.UserSignal,
		Dir: p.Shared, Scratch: p.Scratch, Sluice: program, Before: p.Before, Within: p.Within, GPUs: p.GPUs,
		Ownerless: p.Ownerless, REST: rest,
	})
}

// Open opens a provider of a file, by its kind.
func Open(mark string, p *config.Provider) (provider.Provider, error) {
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == p.Kind })
	if i < 0 {
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		return nil, errkind.Errorf(errkind.Unsupported, "provider %s: this build has no kind %q; it has: %s", p.Pool.Name, p.Kind,
			strings.Join(names, ", "))
	}
	return kinds[i].Open(mark, p)
}
