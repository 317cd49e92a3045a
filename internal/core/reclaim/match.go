package reclaim

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// match is whether a device satisfies a choice.
type match uint8

const (
	noMatch match = iota
	maybe
	is
)

// Compare orders amounts, exactly.
func (a Amount) Compare(b Amount) int {
	if (a.N < 0) != (b.N < 0) || a.N == 0 || b.N == 0 {
		return cmp.Compare(a.N, b.N)
	}
	sign := 1
	x, y := uint64(a.N), uint64(b.N)
	if a.N < 0 {
		x, y, sign = -x, -y, -1
	}
	hi1, lo1 := scaled(x, b.Places-a.Places)
	hi2, lo2 := scaled(y, a.Places-b.Places)
	return sign * cmp.Or(cmp.Compare(hi1, hi2), cmp.Compare(lo1, lo2))
}

// scaled is n times 10^places, or n if places is negative. At most 18 places, so the product fits in 128 bits.
func scaled(n uint64, places int16) (hi, lo uint64) {
	factor := uint64(1)
	for range min(max(places, 0), 18) {
		factor *= 10
	}
	return bits.Mul64(n, factor)
}

// match says whether a device of a pool satisfies a choice.
func (c *Choice) match(p *Pool, d *Device) match {
	m := is
	if c.Odd {
		m = maybe
	}
	if c.Class != "" && !slices.Contains(d.Classes, c.Class) {
		return noMatch
	}
	for i := range c.Terms {
		m = min(m, c.Terms[i].match(p.Driver, d))
	}
	return m
}

func (t *Term) match(driver string, d *Device) match {
	yes := false
	switch t.Kind {
	case OfDriver:
		yes = (driver == t.Value) == (t.Op == "==")
	case OfAttribute:
		value, there := d.attribute(t.Domain, t.Name, driver)
		yes = there && (value == t.Value) == (t.Op == "==")
	case HasAttribute:
		_, yes = d.attribute(t.Domain, t.Name, driver)
	case HasCapacity:
		_, yes = d.capacity(t.Domain, t.Name, driver)
	case OfCapacity:
		n, there := d.capacity(t.Domain, t.Name, driver)
		yes = there && holds(n.Compare(t.Amount), t.Op)
	default:
		return maybe
	}
	if yes {
		return is
	}
	return noMatch
}

// holds reports whether the result of a Compare satisfies an operator.
func holds(sign int, op string) bool {
	switch op {
	case "==":
		return sign == 0
	case "!=":
		return sign != 0
	case ">=":
		return sign >= 0
	case ">":
		return sign > 0
	case "<=":
		return sign <= 0
	}
	return sign < 0
}

// attribute finds an attribute by domain and name; a name without a domain is in the driver's.
func (d *Device) attribute(domain, name, driver string) (string, bool) {
	i := find(len(d.Attributes), func(i int) string { return d.Attributes[i].Name }, domain, name, driver)
	if i < 0 {
		return "", false
	}
	return d.Attributes[i].Value, true
}

// capacity finds a capacity in the same way.
func (d *Device) capacity(domain, name, driver string) (Amount, bool) {
	i := find(len(d.Capacities), func(i int) string { return d.Capacities[i].Name }, domain, name, driver)
	if i < 0 {
		return Amount{}, false
	}
	return d.Capacities[i].Amount, true
}

// find is the index of the item called domain/name, or name alone if the domain is the driver's; -1 if there is none.
func find(n int, called func(int) string, domain, name, driver string) int {
	plain := -1
	for i := range n {
		is := called(i)
		if of, rest, split := strings.Cut(is, "/"); split && of == domain && rest == name {
			return i
		}
		if is == name && domain == driver {
			plain = i
		}
	}
	return plain
}

// label is the value of a machine's label.
func (m *Machine) label(name string) (string, bool) {
	i, there := slices.BinarySearchFunc(m.Labels, name, func(p Pair, name string) int { return strings.Compare(p.Name, name) })
	if !there {
		return "", false
	}
	return m.Labels[i].Value, true
}

// admits reports whether the machine is open and a wish may be served there.
func (m *Machine) admits(w *Where) bool {
	if m.Shut {
		return false
	}
	for i := range m.Taints {
		if !slices.ContainsFunc(w.Tolerates, func(x Toleration) bool { return x.tolerates(&m.Taints[i]) }) {
			return false
		}
	}
	for _, p := range w.Labels {
		if value, there := m.label(p.Name); !there || value != p.Value {
			return false
		}
	}
	if len(w.AnyOf) == 0 {
		return !w.Restricted
	}
	return slices.ContainsFunc(w.AnyOf, func(all Rules) bool {
		return !slices.ContainsFunc(all.All, func(r Rule) bool { return !r.holds(m) })
	})
}

func (r *Rule) holds(m *Machine) bool {
	value, there := m.label(r.Key)
	switch r.Op {
	case "In":
		return there && slices.Contains(r.Values, value)
	case "NotIn":
		return !there || !slices.Contains(r.Values, value)
	case "Exists":
		return there
	case "DoesNotExist":
		return !there
	case "Gt", "Lt":
		return there && len(r.Values) == 1 && ordered(value, r.Values[0], r.Op)
	}
	return false
}

// ordered reports whether a is greater (Gt) or less (Lt) than b; false unless both are integers.
func ordered(a, b, op string) bool {
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	return err1 == nil && err2 == nil && (op == "Gt" && x > y || op == "Lt" && x < y)
}

// tolerates follows the Kubernetes scheduler.
func (x *Toleration) tolerates(of *Taint) bool {
	if x.Effect != "" && x.Effect != of.Effect || x.Key != "" && x.Key != of.Key {
		return false
	}
	switch x.Op {
	case "", "Equal":
		return x.Value == of.Value
	case "Exists":
		return true
	case "Lt", "Gt":
		return ordered(of.Value, x.Value, x.Op)
	}
	return false
}
