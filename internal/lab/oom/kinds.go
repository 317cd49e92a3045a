package oom

import "slices"

// Kind is a tool.
type Kind struct {
	Name, Summary string
	New           func() Killer
}

// Kinds are all of them, the kernel first.
func Kinds() []Kind {
	return []Kind{
		{"kernel", "the kernel's OOM killer alone", func() Killer { return &kernel{} }},
		{"earlyoom", "SIGTERM at 10% of available memory and SIGKILL at 5%, the largest", func() Killer { return &earlyoom{} }},
		{"oomd", "systemd-oomd: who is scanned most once all stalled for 60% of 30 s; who has most swap at 90% of it",
			func() Killer { return &oomd{} }},
		{"kubelet", "node-pressure eviction below 100 MiB, looked at every 10 s: over its request, then priority, then usage",
			func() Killer { return &kubelet{} }},
		{"ray", "Ray's memory monitor at 95%, looked at every 250 ms: the newest of the largest group of retriable tasks",
			func() Killer { return &ray{} }},
	}
}

// Named is the kind of a name, nil if there is none.
func Named(name string) *Kind {
	kinds := Kinds()
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return &kinds[i]
	}
	return nil
}
