package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// Grant is a unit that a worker has until its lease ends. No two grants have the same token.
type Grant struct {
	Unit  int `json:"unit"`
	Token int `json:"token"`
}

// unit is one unit of work. holder is the token of its latest grant; 0: it was never granted, or was given back.
type unit struct {
	holder int
	done   bool
}

// lease is how long a grant holds.
type lease struct {
	Grant
	end time.Time
}

// ledger is the state of a queue. Each change has a record, and the records give the same state again (apply).
type ledger struct {
	timeout time.Duration
	units   []unit
	// fresh is the first unit that was never granted, returned are those that workers gave back, the first to be granted again first.
	fresh    int
	returned []int
	// leases are ordered by their ends, since all are equally long. Those of grants that hold no more are dropped at the front.
	leases []lease
	tokens int
	done   int
}

// holds reports whether nobody else was given the unit since, and it was neither given back nor committed. A lease that has ended still
// holds until the unit is granted again, so that work that came late is not thrown away.
func (l *ledger) holds(g Grant) bool {
	return g.Unit >= 0 && g.Unit < len(l.units) && g.Token > 0 && l.units[g.Unit].holder == g.Token && !l.units[g.Unit].done
}

// push adds n units.
func (l *ledger) push(n int) string {
	l.units = append(l.units, make([]unit, n)...)
	return fmt.Sprintf("push %d\n", n)
}

// next is the unit to grant: one whose lease has ended before one that was given back, and a new one last. It leaves the lists.
func (l *ledger) next(now time.Time) (int, bool) {
	for len(l.leases) > 0 {
		first := l.leases[0]
		live := l.holds(first.Grant)
		if live && first.end.After(now) {
			break
		}
		if l.leases = l.leases[1:]; live {
			return first.Unit, true
		}
	}
	if len(l.returned) > 0 {
		u := l.returned[0]
		l.returned = l.returned[1:]
		return u, true
	}
	if l.fresh < len(l.units) {
		l.fresh++
		return l.fresh - 1, true
	}
	return 0, false
}

// pull grants a unit; without a record there is none.
func (l *ledger) pull(now time.Time) (Grant, string) {
	u, ok := l.next(now)
	if !ok {
		return Grant{}, ""
	}
	l.tokens++
	g := Grant{u, l.tokens}
	l.units[u].holder = g.Token
	l.leases = append(l.leases, lease{g, now.Add(l.timeout)})
	return g, record("pull", g)
}

// back takes a unit back; without a record it was not the caller's any more.
func (l *ledger) back(g Grant) string {
	if !l.holds(g) {
		return ""
	}
	l.units[g.Unit].holder = 0
	l.returned = append(l.returned, g.Unit)
	return record("back", g)
}

// commit counts a unit as done. One that is repeated, since its answer was lost, is accepted without a record; anybody else's is refused.
func (l *ledger) commit(g Grant) (text string, accepted bool) {
	if l.holds(g) {
		l.units[g.Unit].done = true
		l.done++
		return record("commit", g), true
	}
	repeated := g.Unit >= 0 && g.Unit < len(l.units) && g.Token > 0 && l.units[g.Unit] == unit{g.Token, true}
	return "", repeated
}

func record(verb string, g Grant) string { return fmt.Sprintf("%s %d %d\n", verb, g.Unit, g.Token) }

// maxPush bounds what one record may add, so that a damaged one does not fill the memory.
const maxPush = 10_000_000

// apply does what a record says, without its newline, and refuses what can't have happened. Leases begin anew at now.
func (l *ledger) apply(text string, now time.Time) error {
	f := strings.Split(text, " ")
	var n []int
	for _, field := range f[1:] {
		i, err := strconv.Atoi(field)
		if err != nil || strconv.Itoa(i) != field {
			return errkind.Errorf(errkind.Invalid, "%q: want numbers behind the verb", text)
		}
		n = append(n, i)
	}
	switch {
	case f[0] == "push" && len(n) == 1 && n[0] >= 0 && n[0] <= maxPush && len(l.units) <= maxPush:
		l.push(n[0])
		return nil
	case len(n) == 2:
		return l.applyGrant(f[0], Grant{n[0], n[1]}, now)
	}
	return errkind.Errorf(errkind.Invalid, "%q is no record", text)
}

// applyGrant applies a record about one unit. Which unit a pull granted is in the record, because it depended on the time.
func (l *ledger) applyGrant(verb string, g Grant, now time.Time) error {
	accepted := false
	switch verb {
	case "pull":
		if g.Token == l.tokens+1 && l.take(g.Unit) {
			l.tokens++
			l.units[g.Unit].holder = g.Token
			l.leases = append(l.leases, lease{g, now.Add(l.timeout)})
			accepted = true
		}
	case "back":
		accepted = l.back(g) != ""
	case "commit":
		text, _ := l.commit(g)
		accepted = text != ""
	}
	if !accepted {
		return errkind.Errorf(errkind.Invalid, "%s of unit %d by token %d does not follow from what is before it", verb, g.Unit, g.Token)
	}
	return nil
}

// take removes a unit from the list that it can be granted from: the new ones, those given back, or those with a lease, which has ended.
func (l *ledger) take(u int) bool {
	if u < 0 || u >= len(l.units) || l.units[u].done {
		return false
	}
	if u == l.fresh {
		l.fresh++
		return true
	}
	for i, r := range l.returned {
		if r == u {
			l.returned = append(l.returned[:i:i], l.returned[i+1:]...)
			return true
		}
	}
	return l.units[u].holder != 0
}
