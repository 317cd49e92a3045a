package membership

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/fabric/stream"
)

// started is a start of the machine of a directory.
func started(t *testing.T, dir string) *Membership {
	t.Helper()
	m, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// copied is a copy of a directory.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{membershipFile, startsFile, settingsFile} {
		if err := os.Chmod(filepath.Join(to, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestAnOlderCopyIsRefused for good, also after it has tried often; the machine itself goes on, and so does one that joins anew.
func TestAnOlderCopyIsRefused(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	first := c.join(dir, c.invite("a"))
	if _, err := first.Settings(within(t)); err != nil {
		t.Fatal(err)
	}
	old := copied(t, dir)
	for range 3 {
		if _, err := started(t, dir).Settings(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		m := started(t, old)
		_, err := m.Settings(within(t))
		refuses(t, err, errkind.Denied, "an older copy of its data")
		_, err = m.Start(within(t))
		refuses(t, err, errkind.Denied, "sluice nodes remove a")
	}
	if _, err := started(t, dir).Settings(within(t)); err != nil {
		t.Errorf("the machine itself: %v", err)
	}
	if err := c.Remove("a", c.clock.now()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.join(t.TempDir(), c.invite("a")).Settings(within(t)); err != nil {
		t.Errorf("one that has joined anew: %v", err)
	}
}

// TestOfTwoCopiesOneRuns: who has asked first.
func TestOfTwoCopiesOneRuns(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	if _, err := c.join(dir, c.invite("a")).Settings(within(t)); err != nil {
		t.Fatal(err)
	}
	other := copied(t, dir)
	if _, err := started(t, other).Settings(within(t)); err != nil {
		t.Fatal(err)
	}
	_, err := started(t, dir).Settings(within(t))
	refuses(t, err, errkind.Denied, "a second time elsewhere")
}

// TestStartsWhileTheHeadIsAway, or whose answers are lost, keep nobody from coming back.
func TestStartsWhileTheHeadIsAway(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	if _, err := c.join(dir, c.invite("a")).Settings(within(t)); err != nil {
		t.Fatal(err)
	}
	c.shut()
	for range 5 {
		m := started(t, dir)
		if _, err := m.Settings(within(t)); err != nil { // the last ones
			t.Fatal(err)
		}
		_, err := m.Start(within(t))
		refuses(t, err, errkind.Unavailable, "can't be reached")
	}
	c.serve(nil)
	m := started(t, dir)
	start, before, err := m.starts.begin(dir)
	if err != nil || len(before) != 6 {
		t.Fatalf("%q after %v, %v", start, before, err)
	}
	// The head notes it, and its answer is lost.
	if err := c.Started("a", start, before); err != nil {
		t.Fatal(err)
	}
	next := started(t, dir)
	if got, err := next.Start(within(t)); err != nil || got != c.Start("a") {
		t.Errorf("the next start is %q, %v; the head knows %q", got, err, c.Start("a"))
	}
	var k startsKept
	if _, err := readFile(filepath.Join(dir, startsFile), "", &k); err != nil || len(k.Starts) != 1 {
		t.Errorf("%v are kept, %v; want the one that was answered", k.Starts, err)
	}
}

// TestALinkIsOfTheStartThatWasAnswered: a daemon that came up while the head was away asks before it links, and a copy that does not ask
// gets no link.
func TestALinkIsOfTheStartThatWasAnswered(t *testing.T) {
	c := newCluster(t, nil)
	c.shut()
	c.links = nil
	c.serve(func(o *HeadOptions) {
		c.links = stream.NewHead(stream.HeadOptions{Caller: Caller(c.Authority, c.clock.now), Owns: Owns(c.Authority), Timing: brisk,
			Start: c.Start})
		o.Head = c.links
	})
	m := c.join(t.TempDir(), c.invite("a"))
	if _, err := m.Settings(within(t)); err != nil {
		t.Fatal(err)
	}
	o := stream.MemberOptions{Machine: "a", Head: c.addr, TLS: m.TLS, Timing: brisk}
	without := stream.Join(o)
	until(t, "it is told why it has no link", func() bool {
		_, why := without.State()
		return why != nil && strings.Contains(why.Error(), "has not asked for its settings yet")
	})
	if is, _ := c.links.Machine("a"); is.Up || is.Build != "" || is.Why == nil {
		t.Errorf("it had a link, or the head does not say why not: %+v", is)
	}
	_ = without.Close()
	o.Start = m.Start
	with := stream.Join(o)
	defer func() { _ = with.Close() }()
	until(t, "it has one", func() bool { is, _ := c.links.Machine("a"); return is.Up })
}

// TestAHeadOfSeveralUsers takes no machine that would run the subjobs of all as one user: neither one that starts, whether its head answers
// or not, nor one that has started before its head served several.
func TestAHeadOfSeveralUsers(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	m := c.join(dir, c.invite("a"))
	if _, err := m.Settings(within(t)); err != nil {
		t.Fatal(err)
	}
	several := settings
	several.SeveralUsers = true
	c.shut()
	c.links = nil
	c.serve(func(o *HeadOptions) {
		c.links = stream.NewHead(stream.HeadOptions{Caller: Caller(c.Authority, c.clock.now), Owns: Owns(c.Authority), Timing: brisk,
			Start: c.Start, SeveralUsers: true})
		o.Head, o.Settings = c.links, func(job.NodeID) Settings { return several }
	})
	link := func(m *Membership, maps bool) *stream.Member {
		return stream.Join(stream.MemberOptions{Machine: "a", Head: c.addr, TLS: m.TLS, Timing: brisk, Start: m.Start, MapsUsers: maps})
	}
	l := link(m, false)
	until(t, "it is told why it has no link", func() bool {
		_, why := l.State()
		return why != nil && strings.Contains(why.Error(), "single-user mode")
	})
	_ = l.Close()
	_, err := started(t, dir).Settings(within(t))
	refuses(t, err, errkind.Denied, "it would run the subjobs of all as its daemon's own user")
	maps, err := Open(Options{Dir: dir, MapsUsers: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := maps.Settings(within(t)); err != nil || !reflect.DeepEqual(got, several) {
		t.Errorf("one that maps users: %+v, %v", got, err)
	}
	l = link(maps, true)
	defer func() { _ = l.Close() }()
	until(t, "it has a link", func() bool { is, _ := c.links.Machine("a"); return is.Up })
	_ = l.Close()
	c.shut()
	_, err = started(t, dir).Settings(within(t)) // by the last ones
	refuses(t, err, errkind.Denied, "single-user mode")
}
