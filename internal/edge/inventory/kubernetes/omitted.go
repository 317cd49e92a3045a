//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// omitted counts devices that pools name and that can't be offered, by what is wrong with them.
type omitted map[omission]int

type omission struct{ pool, why string }

func (o omitted) add(p *Pool, n int, format string, args ...any) {
	if o != nil && n > 0 {
		o[omission{p.Name, fmt.Sprintf(format, args...)}] += n
	}
}

// mostReasons bounds the reasons that are told.
const mostReasons = 3

// omissions says what is left out on all machines, of one pool or of all (""): "8 devices left out: ... (on w1 and 3 more machines)".
// Empty: nothing. inv.mu is held.
func (inv *Inventory) omissions(pool string) string {
	type reason struct {
		why, machine string
		n, machines  int
	}
	all, total := map[string]*reason{}, 0
	for _, machine := range slices.Sorted(maps.Keys(inv.stands)) {
		seen := map[string]bool{}
		for o, n := range inv.stands[machine].leftOut {
			if pool != "" && o.pool != pool {
				continue
			}
			r := all[o.why]
			if r == nil {
				r = &reason{why: o.why, machine: machine}
				all[o.why] = r
			}
			total += n
			if r.n += n; !seen[o.why] {
				seen[o.why] = true
				r.machines++
			}
		}
	}
	if total == 0 {
		return ""
	}
	var list []*reason
	for _, why := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[why])
	}
	slices.SortStableFunc(list, func(a, b *reason) int { return cmp.Compare(b.n, a.n) })
	var texts []string
	for _, r := range list[:min(len(list), mostReasons)] {
		text := fmt.Sprintf("%s (%d on %s", r.why, r.n, r.machine)
		if r.machines > 1 {
			text += fmt.Sprintf(" and %d more machines", r.machines-1)
		}
		texts = append(texts, text+")")
	}
	if more := len(list) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more reasons", more))
	}
	return fmt.Sprintf("%d devices left out: %s", total, strings.Join(texts, "; "))
}

// LeftOut says which devices that a pool names are not offered, and why; empty: all of them are.
func (inv *Inventory) LeftOut(pool string) string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.omissions(pool)
}
