package bidder

import "slices"

// Kind is a strategy by its name.
type Kind struct {
	Name, Summary string
	// By is what its number is if none is given, in parts per thousand; 0: it has none.
	By int64
	// New makes it with its number.
	New func(by int64) Strategy
}

var kinds = []Kind{
	{"honest", "answers as a built-in job would", 0, func(int64) Strategy { return Honest{} }},
	{"inflate", "declares that every variant is worth all to it", 0, func(int64) Strategy { return Inflate{} }},
	{"shade", "multiplies the scores that it declares", 1500, func(by int64) Strategy { return Shade(by) }},
	{"understate", "multiplies the run times that it declares", 500, func(by int64) Strategy { return Understate(by) }},
	{"tiny-memory", "declares next to no memory", 0, func(int64) Strategy { return TinyMemory{} }},
	{"hoard", "asks for whole windows to do as little as it may there", 0, func(int64) Strategy { return Hoard{} }},
	{"snipe", "answers in the last moment", 0, func(int64) Strategy { return Snipe{} }},
	{"slow", "answers when the round is over", 0, func(int64) Strategy { return Slow{} }},
	{"silent", "never answers", 0, func(int64) Strategy { return Silent{} }},
	{"collude", "leaves each round to one agent of its kind, which declares the most", 0, func(int64) Strategy { return &Collude{} }},
	{"hostile", "floods: variants that break every rule, in answers to any round, of any session", 0,
		func(int64) Strategy { return Hostile{} }},
}

// Find is the strategy of a name.
func Find(name string) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// Names lists the names of the strategies.
func Names() (out []string) {
	for _, k := range kinds {
		out = append(out, k.Name)
	}
	return out
}
