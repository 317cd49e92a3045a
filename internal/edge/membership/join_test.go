package membership

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

// A machine joins, is what it was after a restart, and is linked. Its directory lets nobody else be it.
func TestAMachineJoins(t *testing.T) {
	c := newCluster(t, nil)
	parent := t.TempDir()
	dir := filepath.Join(parent, "membership")
	by := c.invite("a")
	var named atomic.Bool
	durable.OnSync = func(f *os.File) {
		if f.Name() == parent {
			named.Store(true)
		}
	}
	defer func() { durable.OnSync = nil }()
	m := c.join(dir, by)
	if !named.Load() {
		t.Error("the new directory's name may be lost")
	}
	again, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Membership{m, again} {
		if m.Name() != "a" || m.Number() != authority.FirstNumber || m.Head() != c.addr {
			t.Errorf("it is %s, number %d, of the head at %s", m.Name(), m.Number(), m.Head())
		}
	}
	c.link(again)
	if info, err := os.Stat(filepath.Join(dir, membershipFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
	i, err := authority.ReadInvitation(by.Token)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, membershipFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{c.log.String(), string(text)} {
		for _, secret := range []string{by.Token, string(i.Secret()), hex.EncodeToString(i.Secret()),
			base64.StdEncoding.EncodeToString(i.Secret()), base64.RawURLEncoding.EncodeToString(i.Secret())} {
			if strings.Contains(text, secret) {
				t.Errorf("the secret is in %q", text)
			}
		}
	}
}

// The same token again changes nothing, and asks nobody; only the head's address may be another.
func TestJoiningAgain(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	by := c.invite("a")
	first := shown(t, c.join(dir, by))
	c.shut()
	by.Head = "elsewhere.example:7118"
	m := c.join(dir, by)
	if !bytes.Equal(shown(t, m), first) || m.Head() != by.Head || len(c.Machines()) != 1 {
		t.Errorf("the head is at %s, machines: %+v", m.Head(), c.Machines())
	}
	if m, err := Open(Options{Dir: dir}); err != nil || m.Head() != by.Head {
		t.Errorf("kept: %v, %v", m, err)
	}
}

// A directory is one machine's in one cluster: another name and another cluster are refused before anybody is asked.
func TestADirectoryIsOneMachines(t *testing.T) {
	c, other := newCluster(t, nil), newCluster(t, nil)
	dir := t.TempDir()
	m := c.join(dir, c.invite("a"))
	_, err := Join(within(t), Options{Dir: dir}, c.invite("b"))
	refuses(t, err, errkind.Conflict, "is of machine a, not of b")
	_, err = Join(within(t), Options{Dir: dir}, other.invite("a"))
	refuses(t, err, errkind.Conflict, "in another cluster, with its head at "+c.addr)
	if len(c.Machines()) != 1 || len(other.Machines()) != 0 {
		t.Errorf("machines: %+v, %+v", c.Machines(), other.Machines())
	}
	// A needless token is not used up, and leaves what is there.
	_, err = Join(within(t), Options{Dir: dir}, c.invite("a"))
	refuses(t, err, errkind.Exists, "sluice nodes remove a")
	if again, err := Open(Options{Dir: dir}); err != nil || !bytes.Equal(shown(t, again), shown(t, m)) {
		t.Errorf("the membership: %v", err)
	}
}

// Whatever ends a call to join, the same call again makes the same machine of it.
func TestAnAnswerThatIsLost(t *testing.T) {
	c := newCluster(t, nil)
	for i, s := range []struct {
		name string
		// cut has the call end, once the head has changed if joined is set, and returns what mends it.
		cut    func(dir string, by *Invited) (mend func())
		joined bool
		says   string
	}{
		{"the head is away", func(_ string, by *Invited) func() {
			at := by.Head
			by.Head = "127.0.0.1:1"
			return func() { by.Head = at }
		}, false, "can't be reached"},
		{"the connection is cut after the head's change", func(_ string, by *Invited) func() {
			w := between(t, c.addr)
			by.Head = w.addr()
			c.log.when("a machine has joined", w.cut)
			return func() { c.log.when("nothing", nil) }
		}, true, "can't be reached"},
		{"the answer can't be kept", func(dir string, _ *Invited) func() {
			var free func()
			c.log.when("a machine has joined", func() { free = blocked(t, filepath.Join(dir, membershipFile)) })
			return func() { c.log.when("nothing", nil); free() }
		}, true, "join by the same token again"},
		{"a crash while the answer is written", func(dir string, _ *Invited) func() {
			var free func()
			c.log.when("a machine has joined", func() { free = blocked(t, filepath.Join(dir, membershipFile)) })
			return func() {
				c.log.when("nothing", nil)
				free()
				if err := os.WriteFile(filepath.Join(dir, membershipFile+".tmp"), []byte(`{"version`), 0o600); err != nil {
					t.Error(err)
				}
			}
		}, true, "join by the same token again"},
	} {
		t.Run(s.name, func(t *testing.T) {
			dir := t.TempDir()
			by := c.invite(job.NodeID(fmt.Sprint("m", i)))
			before := len(c.Machines())
			mend := s.cut(dir, &by)
			_, err := Join(within(t), Options{Dir: dir}, by)
			if err == nil || !strings.Contains(err.Error(), s.says) {
				t.Fatalf("got %v, want %q", err, s.says)
			}
			if got := len(c.Machines()) - before; got != map[bool]int{true: 1}[s.joined] {
				t.Errorf("%d have joined", got)
			}
			_, err = Open(Options{Dir: dir})
			refuses(t, err, errkind.NotFound, "run sluice join again with the same token")
			mend()
			by.Head = c.addr
			m := c.join(dir, by)
			if list := c.Machines(); len(list) != before+1 || c.Named(m.Number()) != by.Name {
				t.Errorf("number %d, machines: %+v", m.Number(), list)
			}
		})
	}
}

// Nobody is asked before the key is kept.
func TestAKeyThatCantBeKept(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	by := c.invite("a")
	free := blocked(t, filepath.Join(dir, membershipFile))
	if _, err := Join(within(t), Options{Dir: dir}, by); err == nil || !strings.Contains(err.Error(), "keep who this machine is") {
		t.Errorf("got %v", err)
	}
	if list := c.Machines(); len(list) != 0 {
		t.Errorf("machines: %+v", list)
	}
	free()
	c.join(dir, by)
}

// A machine whose answer is lost until its token lapses is in the head's list, and joins again once it was removed there, with another key.
func TestATokenThatLapsesMeanwhile(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	by := c.invite("a")
	w := between(t, c.addr)
	c.log.when("a machine has joined", w.cut)
	lost := by
	lost.Head = w.addr()
	_, err := Join(within(t), Options{Dir: dir}, lost)
	refuses(t, err, errkind.Unavailable, "")
	c.clock.advance(2 * time.Hour)
	_, err = Join(within(t), Options{Dir: dir, Now: c.clock.now}, by)
	refuses(t, err, errkind.Denied, "has lapsed")
	by = c.invite("a")
	_, err = Join(within(t), Options{Dir: dir, Now: c.clock.now}, by)
	refuses(t, err, errkind.Exists, "sluice nodes remove a")
	was := c.Machines()[0]
	if err := c.Remove("a", c.clock.now()); err != nil {
		t.Fatal(err)
	}
	c.join(dir, by)
	if is := c.Machines()[0]; is.Key == was.Key || is.Number == was.Number {
		t.Errorf("it was %+v, and is %+v", was, is)
	}
}

// Of two machines with one token one joins. The other is told why, and joins by a token of its own.
func TestTwoWithOneToken(t *testing.T) {
	c := newCluster(t, nil)
	by := c.invite("")
	var both sync.WaitGroup
	dirs, errs := [2]string{t.TempDir(), t.TempDir()}, [2]error{}
	for i := range dirs {
		mine := by
		mine.Name = job.NodeID(fmt.Sprint("m", i))
		both.Go(func() { _, errs[i] = Join(within(t), Options{Dir: dirs[i]}, mine) })
	}
	both.Wait()
	loser := 0
	if errs[0] == nil {
		loser = 1
	}
	if errs[1-loser] != nil {
		t.Fatal(errs)
	}
	refuses(t, errs[loser], errkind.Denied, "which is good once")
	c.join(dirs[loser], c.invite("third"))
	if n := len(c.Machines()); n != 2 {
		t.Errorf("%d machines", n)
	}
}

// Whoever answers at the head's address without its root is shown no secret, and no machine's certificate.
func TestAnotherHead(t *testing.T) {
	c, other := newCluster(t, nil), newCluster(t, nil)
	by := c.invite("a")
	by.Head = other.addr
	dir := t.TempDir()
	_, err := Join(within(t), Options{Dir: dir}, by)
	refuses(t, err, errkind.Denied, "not the head that made the token")
	by.Head = c.addr
	c.join(dir, by)
	by.Head = other.addr
	m := c.join(dir, by)
	_, err = m.Settings(within(t))
	refuses(t, err, errkind.Denied, "is not the head of this machine's cluster")
	refuses(t, m.renew(within(t)), errkind.Denied, "is not the head of this machine's cluster")
	if text := other.log.String(); strings.Contains(text, "joined") || strings.Contains(text, "may not join") {
		t.Errorf("the other head was asked: %s", text)
	}
}

// The head's certificate is good from an hour ago on. A clock that is further behind, or days ahead, is named as what is wrong.
func TestAClockThatIsWrong(t *testing.T) {
	c := newCluster(t, nil)
	for i, s := range []struct {
		ahead time.Duration
		says  string
	}{
		{-30 * time.Minute, ""}, {-3 * time.Hour, "compare the clocks"}, {3 * time.Hour, ""}, {8 * 24 * time.Hour, "compare the clocks"},
	} {
		var wrong clock
		wrong.advance(s.ahead)
		dir := t.TempDir()
		by := c.invite(job.NodeID(fmt.Sprint("m", i)))
		m, err := Join(within(t), Options{Dir: dir, Now: wrong.now}, by)
		if s.says == "" {
			if err == nil {
				_, err = m.Settings(within(t))
			}
			if err != nil {
				t.Errorf("a clock %v ahead: %v", s.ahead, err)
			}
			continue
		}
		refuses(t, err, errkind.Unavailable, s.says)
		wrong.ahead.Store(0) // it is set right
		if _, err = Join(within(t), Options{Dir: dir, Now: wrong.now}, by); err != nil {
			t.Error(err)
		}
	}
}

// What can be no invitation is refused before anything is written.
func TestWhatIsNoInvitation(t *testing.T) {
	c := newCluster(t, nil)
	dir := filepath.Join(t.TempDir(), "none")
	good := c.invite("a")
	for _, s := range []struct {
		change func(*Invited)
		says   string
	}{
		{func(i *Invited) { i.Token = "sluice-join-1-x" }, "this is no token"},
		{func(i *Invited) { i.Name = "../a" }, "machine name"},
		{func(i *Invited) { i.Head = "head.example" }, "want host:port"},
		{func(i *Invited) { i.Head = ":7118" }, "want host:port"},
	} {
		by := good
		s.change(&by)
		_, err := Join(within(t), Options{Dir: dir}, by)
		refuses(t, err, errkind.Invalid, s.says)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a directory was made")
	}
	_, err := Open(Options{Dir: dir})
	refuses(t, err, errkind.NotFound, "sluice token create")
}

// A directory is read whole, or refused with what to do.
func TestADamagedDirectory(t *testing.T) {
	c := newCluster(t, nil)
	other := t.TempDir()
	c.join(other, c.invite("other"))
	edit := func(change func(*kept)) func(string) error {
		return func(dir string) error {
			k, err := readKept(dir)
			if err != nil {
				return err
			}
			change(&k)
			return k.write(dir)
		}
	}
	theirs, err := readKept(other)
	if err != nil {
		t.Fatal(err)
	}
	file := func(dir string) string { return filepath.Join(dir, membershipFile) }
	for i, s := range []struct {
		name, says string
		kind       errkind.Kind
		harm       func(dir string) error
	}{
		{"it is gone", "belongs to no cluster", errkind.NotFound, func(d string) error { return os.Remove(file(d)) }},
		{"it is cut", "is damaged", errkind.Corrupt, func(d string) error { return os.Truncate(file(d), 100) }},
		{"it is empty", "is damaged", errkind.Corrupt, func(d string) error { return os.Truncate(file(d), 0) }},
		{"others may read it", "may have been read", errkind.Denied, func(d string) error { return os.Chmod(file(d), 0o640) }},
		{"others may write beside it", "may have been written", errkind.Denied, func(d string) error { return os.Chmod(d, 0o730) }},
		{"a newer build", "version 2", errkind.Unsupported,
			func(d string) error { return os.WriteFile(file(d), []byte(`{"version": 2, "joined": []}`), 0o600) }},
		{"no version", "its version is 0", errkind.Corrupt, func(d string) error { return os.WriteFile(file(d), []byte(`{}`), 0o600) }},
		{"no key", "the machine's key", errkind.Corrupt, edit(func(k *kept) { k.Joined.Key = nil })},
		{"another's key", "for another key", errkind.Corrupt, edit(func(k *kept) { k.Joined.Key = theirs.Joined.Key })},
		{"another's certificate and key", `for machine "other"`, errkind.Corrupt,
			edit(func(k *kept) { k.Joined.Key, k.Joined.Certificate = theirs.Joined.Key, theirs.Joined.Certificate })},
		{"another's root", "another cluster's", errkind.Corrupt, edit(func(k *kept) { k.Joined.Root = k.Joined.Certificate })},
		{"a root of its own", "not signed by", errkind.Corrupt, edit(func(k *kept) {
			k.Joined.Root = k.Joined.Certificate
			k.Joined.Cluster = hashOf(k.Joined.Root)
		})},
		{"no number", "number is 0", errkind.Corrupt, edit(func(k *kept) { k.Joined.Number = 0 })},
		{"a number beyond tokens", "number is 16777216", errkind.Corrupt, edit(func(k *kept) { k.Joined.Number = node.MaxNumber + 1 })},
		{"what was asked is damaged", "the machine's key", errkind.Corrupt, edit(func(k *kept) { k.Asked = &identity{Name: "a"} })},
	} {
		t.Run(s.name, func(t *testing.T) {
			dir := t.TempDir()
			c.join(dir, c.invite(job.NodeID(fmt.Sprint("m", i))))
			if err := s.harm(dir); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(file(dir))
			_, err := Open(Options{Dir: dir})
			refuses(t, err, s.kind, s.says)
			if s.kind == errkind.NotFound {
				return
			}
			_, err = Join(within(t), Options{Dir: dir}, c.invite(job.NodeID(fmt.Sprint("m", i))))
			refuses(t, err, s.kind, s.says)
			if after, _ := os.ReadFile(file(dir)); !bytes.Equal(before, after) {
				t.Error("it was changed")
			}
		})
	}
}

// Settings come from the head, as they are for this machine, and from the last answer while the head is away.
func TestSettings(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	m := c.join(dir, c.invite("a"))
	want := settings
	want.Zone = "z-a"
	c.shut()
	_, err := m.Settings(within(t))
	refuses(t, err, errkind.Unavailable, "can't be reached")
	c.serve(nil)
	if got, err := m.Settings(within(t)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	c.shut()
	again, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Settings(within(t)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the last ones: %+v, %v", got, err)
	}
	// What is there and can't be read is said, beside why the head was not asked.
	path := filepath.Join(dir, settingsFile)
	for _, s := range []struct {
		text, says string
	}{
		{`{"version": 9}`, "version 9"}, {`{"version`, "is damaged"}, {`{"version": 1, "settings": "/w=="}`, "is damaged"},
	} {
		if err := os.WriteFile(path, []byte(s.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := again.Settings(within(t)); err == nil || !strings.Contains(err.Error(), s.says) ||
			!strings.Contains(err.Error(), "can't be reached") {
			t.Errorf("%s: got %v", s.text, err)
		}
	}
	// A head without a field leaves it to the machine; the empty ones survive.
	c.serve(func(o *HeadOptions) { o.Settings = func(job.NodeID) Settings { return Settings{} } })
	if got, err := again.Settings(within(t)); err != nil || !reflect.DeepEqual(got, Settings{}) {
		t.Errorf("empty ones: %+v, %v", got, err)
	}
}

// A call that is given up ends at once.
func TestAJoinThatIsGivenUp(t *testing.T) {
	c := newCluster(t, func(o *HeadOptions) { o.RefusedFor, o.CallTime = time.Hour, 2*time.Hour })
	ctx, end := context.WithCancel(context.Background())
	c.log.when("may not join", end)
	by := c.invite("a")
	c.clock.advance(2 * time.Hour) // the token has lapsed
	_, err := Join(ctx, Options{Dir: t.TempDir(), Now: c.clock.now}, by)
	refuses(t, err, errkind.Unavailable, "can't be reached")
}
