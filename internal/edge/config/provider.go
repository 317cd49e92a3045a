package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/strict"
)

// Kinds of providers that a file may name.
const (
	KindSlurm      = "slurm"
	KindKubernetes = "kubernetes"
)

// Defaults and bounds of a provider.
const (
	defaultIdle      = 2 * time.Minute
	defaultStart     = 30 * time.Second
	defaultLookEvery = 5 * time.Second
	maxProviders     = 100
	maxPilots        = 10_000
	maxLengths       = 32
)

// Provider lends machines to a head.
type Provider struct {
	// Pool is what the core knows of it. Step is the unit of its kind.
	Pool supply.Pool
	// Kind is one of those above.
	Kind string
	// Every is how often its host is looked at. Head is the address that pilots' machines call; empty: that of --cluster.
	Every time.Duration
	Head  string
	// GPUs is where pilots' slices come from; empty: as the kind has it.
	GPUs string
	// Ownerless is for how long a pilot may hear nothing of its head; 0: until its end.
	Ownerless time.Duration

	// Pods says what each pilot is of kind kubernetes.
	Pods PilotPods

	// Of kind slurm: what each pilot is asked for with. CPUs and Memory are 0 where the cluster's default holds.
	Partition, Gres                                string
	CPUs                                           int
	Memory                                         quantity.Amount
	Account, QOS, Constraint, Reservation, Exclude string
	// Options are further ones of sbatch.
	Options []string
	// Shared is a folder that this machine and the nodes share; empty: there is none. Scratch is where pilots keep their data on the node,
	// Sluice the program there; empty: as the kind has it.
	Shared, Scratch, Sluice string
	// Before are lines of shell that are run first, Within the words before the program.
	Before, Within []string
	// UserSignal: the site tells jobs that they are preempted by the user signal.
	UserSignal bool
	// REST is how slurmrestd is reached; nil: Slurm is asked by its commands.
	REST *SlurmREST
}

// SlurmREST is how a slurmrestd is reached. What is empty is as the kind has it.
type SlurmREST struct{ URL, User, TokenFile, Version string }

// ProvidersOf reads a list of providers, each name once: [{name, kind, atMost, lengths, idle, start, every, slices: [{memory, count,
// speed, model, profile}], gpus, head, ownerless}], and the keys of each kind: slurmKeys and podKeys. name, kind, atMost and lengths are
// needed, of kind slurm partition, of kind kubernetes namespace, image and sluiceImage, and slices where gres or resources do not say them.
func ProvidersOf(v strict.Value) (out []Provider) {
	seen := map[string]int{}
	for _, e := range v.List("a list of providers such as [{name: scavenger, kind: slurm, partition: preempt, gres: gpu:1g.10gb:1, "+
		"atMost: 8, lengths: [10m, 30m, 2h]}]", maxProviders) {
		p := providerOf(e)
		if line, again := seen[p.Pool.Name]; again && p.Pool.Name != "" {
			e.Wrong("provider %q is given in line %d too", p.Pool.Name, line)
		}
		seen[p.Pool.Name] = e.Line()
		out = append(out, p)
	}
	return out
}

// Keys that providers of every kind have, and those of one kind alone.
//
//nolint:gochecknoglobals // read-only by use
var (
	poolKeys  = []string{"name", "kind", "atMost", "lengths", "idle", "start", "every", "slices", "gpus", "head", "ownerless"}
	slurmKeys = []string{"partition", "gres", "cpus", "memory", "account", "qos", "constraint", "reservation", "exclude", "options",
		"shared", "scratch", "sluice", "before", "within", "userSignal", "rest"}
	podKeys = []string{"namespace", "image", "sluiceImage", "resources", "priorityClass", "nodeSelector", "tolerates", "grace", "user",
		"kubeconfig", "context"}
)

func providerOf(v strict.Value) Provider {
	o := v.Object(slices.Concat(poolKeys, slurmKeys, podKeys)...)
	kinds := []string{KindSlurm, KindKubernetes}
	p := Provider{
		Kind: kinds[o.Need("kind", KindSlurm).Choice(kinds...)],
		Pool: supply.Pool{
			Name: poolName(o.Need("name", "scavenger")), Most: int(o.Need("atMost", "8").Integer(1, maxPilots, 1)),
			Lengths: lengthsOf(o.Need("lengths", "[10m, 30m, 2h]")), Step: time.Minute,
			Idle:     o.Get("idle").Duration(time.Second, MaxTime, defaultIdle),
			Start:    o.Get("start").Duration(time.Second, time.Hour, defaultStart),
			HandOver: departure.HandOver,
		},
		Every: o.Get("every").Duration(time.Second, time.Hour, defaultLookEvery),
		Head:  headOf(o.Get("head")),
		GPUs:  wordOf(o.Get("gpus"), "as --gpus of sluice join, such as nvml"),
	}
	longest := MaxTime
	if n := len(p.Pool.Lengths); n > 0 {
		longest = p.Pool.Lengths[n-1]
	}
	p.Ownerless = ownerlessOf(o.Get("ownerless"), longest)
	p.Pool.Slices = SlicesOf(o.Get("slices"))
	var said []supply.Slice // by what a pilot is asked for with
	var what string
	if p.Kind == KindKubernetes {
		alien(o, slurmKeys, KindSlurm)
		p.Pods = pilotPodsOf(o)
		said, what = p.Pods.slices(), fmt.Sprintf("resources %v", p.Pods.Resources)
	} else {
		alien(o, podKeys, KindKubernetes)
		slurmOf(o, &p)
		said, what = slicesOfGres(p.Gres), fmt.Sprintf("gres %q", p.Gres)
	}
	if !o.Has("slices") && o.Given() {
		if p.Pool.Slices = said; len(said) == 0 {
			o.Wrong("does not say what slices a pilot has, and they don't follow from %s; write for example slices: [{memory: 10Gi}]", what)
		}
	}
	return p
}

// alien reports keys of another kind.
func alien(o strict.Object, keys []string, kind string) {
	for _, key := range keys {
		if v := o.Get(key); v.Given() {
			v.Wrong("is for kind %s alone", kind)
		}
	}
}

// slurmOf reads the keys of kind slurm.
func slurmOf(o strict.Object, p *Provider) {
	word := func(key, want string) string { return wordOf(o.Get(key), want) }
	p.Partition = wordOf(o.Need("partition", "preempt"), "a partition such as preempt")
	p.Gres = word("gres", "a typed resource such as gpu:1g.10gb:1")
	p.CPUs, p.Memory = int(o.Get("cpus").Integer(1, 1<<16, 0)), o.Get("memory").Bytes(1<<20, 0)
	p.Account, p.QOS, p.Constraint = word("account", "an account"), word("qos", "a QOS"), word("constraint", "features of nodes")
	p.Reservation, p.Exclude = word("reservation", "a reservation"), word("exclude", "nodes such as node[1-3]")
	p.Options = linesOf(o.Get("options"), "a list of options of sbatch such as [--nice=100]")
	p.Shared, p.Scratch = pathOf(o.Get("shared"), "a folder such as /shared/sluice"), word("scratch", "a folder such as /tmp")
	p.Sluice = word("sluice", "a program such as /usr/bin/sluice")
	p.Before = linesOf(o.Get("before"), "a list of lines such as [module load cuda]")
	p.Within = linesOf(o.Get("within"), "a list of words such as [apptainer, exec, --nv, image.sif]")
	p.UserSignal = o.Get("userSignal").Boolean(false)
	if rest := o.Get("rest"); rest.Given() {
		p.REST = restOf(rest)
		if v := o.Get("options"); v.Given() {
			v.Wrong("are sbatch's, which is not called with rest")
		}
	}
}

// restOf is how slurmrestd is reached: {url, user, tokenFile, version}; url is needed.
func restOf(v strict.Value) *SlurmREST {
	o := v.Object("url", "user", "tokenFile", "version")
	return &SlurmREST{
		URL:       wordOf(o.Need("url", "unix:/run/slurmrestd.sock"), "unix:/PATH or https://HOST[:PORT]"),
		User:      wordOf(o.Get("user"), "a user's name"),
		TokenFile: pathOf(o.Get("tokenFile"), "a file with a JWT such as /home/ada/.slurm-jwt"),
		Version:   wordOf(o.Get("version"), "a version such as v0.0.43"),
	}
}

// poolName is the name of a pool.
func poolName(v strict.Value) string {
	const want = "at most 20 lower-case letters, digits and hyphens, such as scavenger, first a letter"
	s := v.Text(want, "")
	if v.Plain() && !provider.SoundPool(s) {
		v.Wrong("is %s; want %s", v.What(), want)
		return ""
	}
	return s
}

// lengthsOf are whole minutes, each longer than the one before.
func lengthsOf(v strict.Value) (list []time.Duration) {
	all := v.List("a list of lengths such as [10m, 30m, 2h]", maxLengths)
	if v.Listed() && len(all) == 0 {
		v.Wrong("are none; want at least one, such as [10m, 30m, 2h]")
	}
	for _, e := range all {
		found := e.Count()
		d := e.Duration(time.Minute, MaxTime, time.Minute)
		switch {
		case e.Count() != found:
		case d%time.Minute != 0:
			e.Wrong("is %s; the host counts in minutes: want whole ones", strict.FormatDuration(d))
		case len(list) > 0 && d <= list[len(list)-1]:
			e.Wrong("is %s, after %s; want each longer than the one before", strict.FormatDuration(d),
				strict.FormatDuration(list[len(list)-1]))
		default:
			list = append(list, d)
		}
	}
	return list
}

// SlicesOf are those of one pilot: [{memory, count, speed, model, profile}]. memory is needed.
func SlicesOf(v strict.Value) (list []supply.Slice) {
	for _, e := range v.List("a list of slices such as [{memory: 10Gi, count: 1, profile: 1g.10gb}]", maxSlices) {
		o := e.Object("memory", "count", "speed", "model", "profile")
		s := supply.Slice{
			Capacity: trp.Vector{trp.Memory: o.Need("memory", "10Gi").Bytes(1<<20, 1<<20)},
			Speed:    o.Get("speed").Fraction(1000, 1, 100_000, 0),
			Model:    wordOf(o.Get("model"), "a model such as A100-SXM4-80GB"),
			Profile:  wordOf(o.Get("profile"), "a profile such as 1g.10gb"),
		}
		s = named(s)
		for range o.Get("count").Integer(1, maxSlices, 1) {
			list = append(list, s)
		}
	}
	if v.Listed() && len(list) == 0 || len(list) > maxSlices {
		v.Wrong("are %d; want 1 to %d", len(list), maxSlices)
	}
	return list
}

// named has a slice's model and profile as inventories name them, and its speed as it is known where it was left out.
func named(s supply.Slice) supply.Slice {
	profile, is := mig.Canonical(s.Profile)
	if is {
		s.Profile = profile
	}
	if s.Model != "" {
		s.Model, _ = mig.ModelOf(s.Model)
	}
	if s.Speed == 0 {
		if s.Speed = 1000; is {
			s.Speed = mig.Lookup(s.Model, s.Profile).Speed
		}
	}
	return s
}

// headOf is host:port.
func headOf(v strict.Value) string {
	const want = "the address of this head as nodes of the host reach it, such as head.example:7118"
	s := wordOf(v, want)
	if s == "" {
		return ""
	}
	at, port, err := net.SplitHostPort(s)
	n, bad := strconv.Atoi(port)
	if err != nil || bad != nil || at == "" || n < 1 || n > 65535 {
		v.Wrong("is %s; want %s", v.What(), want)
		return ""
	}
	return s
}
