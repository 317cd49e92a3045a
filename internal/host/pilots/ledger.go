package pilots

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
	"sluice.dev/sluice/internal/edge/versioned"
)

// FileName is the ledger below the data directory of a head.
const FileName = "pilots.json"

// Versions of the file. Any change of what it means raises the newest one, so that an earlier build refuses it untouched.
const oldestVersion, newestVersion = 1, 1

const mend = "restore it from a copy of the data directory, or cancel this daemon's pilots at their hosts and remove the file"

// Ledger is the durable record of all pools' pilots. Tokens are not in it. Safe for concurrent use.
type Ledger struct {
	path string

	mu    sync.Mutex
	pools []book // by name
}

// content of the file.
type content struct {
	Version int    `json:"version"`
	Pools   []book `json:"pools"`
}

// book is what is recorded of one pool. Values are never changed in place: others may have copies.
type book struct {
	Pool string `json:"pool"`
	// Paused is who paused it and why; empty: nobody did.
	Paused string `json:"paused,omitempty"`
	// Pilots that may be there, by name.
	Pilots []entry `json:"pilots"`
	// Endings are the latest, oldest first, at most supply.MostEndings.
	Endings []ending `json:"endings"`
	// Ended counts all endings of the pool by the words of how.
	Ended map[string]int `json:"ended,omitempty"`
}

// entry is one pilot that may be there. Times are zero where it has not come to that.
type entry struct {
	Name   string        `json:"name"`
	Length time.Duration `json:"length"` // ns
	// Asked is when it was written down, before the host was asked.
	Asked time.Time `json:"asked"`
	// Shown: the host has shown it.
	Shown bool `json:"shown,omitempty"`
	// Started is when it began at its host, Joined when its machine joined.
	Started time.Time `json:"started,omitzero"`
	Joined  time.Time `json:"joined,omitzero"`
	// Cancelled is when it was given back, and Why. Late: since its machine has not joined in time, or never could, which is a failure.
	Cancelled time.Time `json:"cancelled,omitzero"`
	Why       string    `json:"why,omitempty"`
	Late      bool      `json:"late,omitempty"`
	// Limited: when it was last seen to wait, a limit of its host's kept it back.
	Limited bool `json:"limited,omitempty"`
}

// record is what is known of the pilot, as the core has it.
func (e *entry) record() pilot.Record {
	return pilot.Record{Name: e.Name, Length: e.Length, Asked: instant(e.Asked), Shown: e.Shown, Started: instant(e.Started),
		Joined: instant(e.Joined), Cancelled: instant(e.Cancelled), Why: e.Why, Late: e.Late, Limited: e.Limited}
}

// note writes down what has become of the pilot.
func (e *entry) note(r *pilot.Record) {
	e.Shown, e.Started, e.Joined = r.Shown, moment(r.Started), moment(r.Joined)
	e.Cancelled, e.Why, e.Late, e.Limited = moment(r.Cancelled), r.Why, r.Late, r.Limited
}

// ending is a pilot that is gone.
type ending struct {
	Name    string        `json:"name"`
	How     how           `json:"how"`
	Length  time.Duration `json:"length"` // ns
	Asked   time.Time     `json:"asked"`
	Started time.Time     `json:"started,omitzero"`
	Joined  time.Time     `json:"joined,omitzero"`
	Ended   time.Time     `json:"ended"`
	Why     string        `json:"why,omitempty"`
	Limited bool          `json:"limited,omitempty"`
}

// how a pilot ended, as a word in the file.
type how supply.How

// MarshalText is part of encoding.TextMarshaler.
func (h how) MarshalText() ([]byte, error) { return []byte(supply.How(h).String()), nil }

// UnmarshalText is part of encoding.TextUnmarshaler.
func (h *how) UnmarshalText(text []byte) error {
	for is := supply.Done; is <= supply.Vanished; is++ {
		if is.String() == string(text) {
			*h = how(is)
			return nil
		}
	}
	return fmt.Errorf("a pilot has ended %.20q", text)
}

// OpenLedger reads the ledger below a data directory, whose lock the caller holds; without a file it is empty. Errors: Corrupt for a file
// that is damaged, Unsupported for one of a later build.
func OpenLedger(dataDir string) (*Ledger, error) {
	l := &Ledger{path: filepath.Join(dataDir, FileName)}
	text, err := os.ReadFile(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err != nil:
		return nil, fmt.Errorf("the ledger of pilots: %w", err)
	}
	var c content
	if err = versioned.Decode(l.path, text, oldestVersion, newestVersion, mend, &c); err != nil {
		return nil, err
	}
	if err = c.check(); err != nil {
		return nil, versioned.Damaged(l.path, mend, err)
	}
	l.pools = c.Pools
	return l, nil
}

// check says what can't be.
func (c *content) check() error {
	pools := map[string]bool{}
	for _, b := range c.Pools {
		names := map[string]bool{}
		if pools[b.Pool] {
			return fmt.Errorf("pool %q is there twice", b.Pool)
		}
		pools[b.Pool] = true
		for i := range b.Pilots {
			e := &b.Pilots[i]
			if names[e.Name] || !Named(b.Pool, e.Name) || e.Length <= 0 || e.Asked.IsZero() {
				return fmt.Errorf("pilot %.70q of pool %q can't be", e.Name, b.Pool)
			}
			names[e.Name] = true
		}
	}
	return nil
}

// Pools that anything is recorded of, by name.
func (l *Ledger) Pools() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.pools {
		names = append(names, l.pools[i].Pool)
	}
	return names
}

// Names of pilots of a pool that may be there.
func (l *Ledger) Names(pool string) (names []string) {
	for _, e := range l.read(pool).Pilots {
		names = append(names, e.Name)
	}
	return names
}

// read is what is recorded of a pool.
func (l *Ledger) read(pool string) book {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(pool); i >= 0 {
		return l.pools[i]
	}
	return book{Pool: pool}
}

func (l *Ledger) index(pool string) int {
	return slices.IndexFunc(l.pools, func(b book) bool { return b.Pool == pool })
}

// change applies f to a copy of what is recorded of a pool, and keeps it once that is durable. If f changes nothing, nothing is written.
func (l *Ledger) change(pool string, f func(*book) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, at := slices.Clone(l.pools), l.index(pool)
	if at < 0 {
		at = len(next)
		next = append(next, book{Pool: pool})
	}
	was, b := next[at], &next[at]
	b.Pilots, b.Endings = slices.Clone(b.Pilots), slices.Clone(b.Endings)
	ended := make(map[string]int, len(b.Ended))
	for k, n := range b.Ended {
		ended[k] = n
	}
	b.Ended = ended
	if err := f(b); err != nil {
		return err
	}
	if was.Paused == b.Paused && slices.Equal(was.Pilots, b.Pilots) && slices.Equal(was.Endings, b.Endings) {
		return nil
	}
	slices.SortFunc(next, func(a, b book) int { return cmp.Compare(a.Pool, b.Pool) })
	text, err := json.MarshalIndent(content{Version: newestVersion, Pools: next}, "", " ")
	if err == nil {
		err = durable.Replace(l.path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the ledger of pilots: %w", err)
	}
	l.pools = next
	return nil
}

// index of a pilot; -1: it is not there.
func (b *book) index(name string) int {
	return slices.IndexFunc(b.Pilots, func(e entry) bool { return e.Name == name })
}

// ask writes a pilot down. Errors: Exhausted, where there are as many as may be.
func (b *book) ask(e entry, most int) error {
	if len(b.Pilots) >= most {
		return errkind.Errorf(errkind.Exhausted, "pool %s has %d pilots, which is its limit", b.Pool, len(b.Pilots))
	}
	b.Pilots = append(b.Pilots, e)
	slices.SortFunc(b.Pilots, func(a, b entry) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// end takes a pilot off the list, and notes how it ended.
func (b *book) end(x *supply.Ending) {
	i := b.index(x.Name)
	if i < 0 {
		return
	}
	e := b.Pilots[i]
	b.Pilots = slices.Delete(b.Pilots, i, i+1)
	b.Endings = append(b.Endings, ending{Name: e.Name, How: how(x.How), Length: e.Length, Asked: e.Asked, Started: e.Started,
		Joined: e.Joined, Ended: moment(x.Ended), Why: x.Why, Limited: x.Limited})
	b.Endings = b.Endings[max(0, len(b.Endings)-supply.MostEndings):]
	b.Ended[x.How.String()]++
}
