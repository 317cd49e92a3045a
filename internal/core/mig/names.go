package mig

import (
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/quantity"
)

// name is a profile's name taken apart: [PARTc.]COMPUTEg.GIGABYTESgb and what it has more or less than others of that
// size, such as "+me" and "-me".
type name struct {
	part, compute, gigabytes int
	extras                   string
}

// extras are what a profile may have more (+) or less (-): all media engines, some, graphics.
var extras = []string{"me.all", "me", "gfx"} //nolint:gochecknoglobals // a table, written to by nobody

// parseName reads a name in any spelling in use: as the driver prints it ("1g.24gb+me.all", or "MIG 1g.24gb+me.all" behind
// a model), as Kubernetes has to ("mig-1g.24gb.me.all": no '+' there), in either case, with blanks or without its dots.
func parseName(s string) (n name, ok bool) {
	s = strings.ToLower(strings.Join(strings.Fields(s), ""))
	if i := strings.LastIndex(s, "mig"); i >= 0 {
		s = strings.TrimLeft(s[i+len("mig"):], "-_.")
	}
	number := func(unit string) (v int) {
		digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
		rest, found := strings.CutPrefix(s[digits:], unit)
		v, err := strconv.Atoi(s[:digits])
		if !found || err != nil || v < 1 || v > 9999 {
			return 0
		}
		s = rest
		return v
	}
	if n.part = number("c"); n.part > 0 {
		s = strings.TrimPrefix(s, ".")
	}
	n.compute = number("g")
	s = strings.TrimPrefix(s, ".")
	n.gigabytes = number("gb")
	for s != "" && n.gigabytes > 0 {
		sign := "+"
		if s[0] == '-' {
			sign = "-"
		}
		word := ""
		for _, x := range extras {
			if word == "" && strings.HasPrefix(s[1:], x) {
				word = x
			}
		}
		if word == "" || !strings.ContainsRune("+.-", rune(s[0])) {
			return name{}, false
		}
		n.extras += sign + word
		s = s[1+len(word):]
	}
	return n, n.compute > 0 && n.gigabytes > 0
}

// String is the name as drivers print it.
func (n name) String() string {
	part := ""
	if n.part > 0 {
		part = strconv.Itoa(n.part) + "c."
	}
	return part + strconv.Itoa(n.compute) + "g." + strconv.Itoa(n.gigabytes) + "gb" + n.extras
}

// Canonical is a profile's name as drivers print it, whichever way it was written; false: it is no name of a profile.
func Canonical(s string) (string, bool) {
	n, ok := parseName(s)
	if !ok {
		return strings.TrimSpace(s), false
	}
	return n.String(), true
}

// plain is what of a product's name tells it from others: drivers, labels and people differ in blanks, signs, case, and
// whether they say whose product it is.
func plain(product string) string {
	s := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(product))
	return strings.TrimSuffix(strings.TrimPrefix(s, "nvidia"), "gb")
}

// named is the memory that a name promises: gigabytes in it are decimal, or what they are rounded from is.
func named(gigabytes int) quantity.Amount { return quantity.Amount(gigabytes) * 1e9 }
