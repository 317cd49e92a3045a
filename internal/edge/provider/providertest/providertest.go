// Package providertest is the conformance suite that every kind of provider must pass.
package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// Host is one under test: what happens there happens by these calls, as package fake says of its own.
type Host interface {
	Provider(mark string) provider.Provider
	Start(name string)
	End(name string, failed bool)
	Preempt(name string)
	Crash()
	Save()
	Double(name string)
	Forget()
	Silence(on bool)
	Deafen(on bool)
	Refuse(err error)
}

// Untried is a Host whose provider can't say what it would do with a pilot: each trial of a sound one is Unsupported.
type Untried interface{ Untried() }

// The marks of two daemons.
const (
	ours   = "aaaa1111"
	theirs = "bbbb2222"
)

// secret is the token of every pilot here.
const secret = "sluice-join-1-a-secret-of-tests"

// scene is a fresh host and what one daemon sees of it.
type scene struct {
	*testing.T
	host Host
	provider.Provider
	step time.Duration
}

// Run checks a kind whose lengths are counted in steps. open makes a fresh host each time.
func Run(t *testing.T, step time.Duration, open func(t *testing.T) Host) {
	for _, c := range []struct {
		name string
		do   func(s *scene)
	}{
		{"a pilot that was asked for waits", waits},
		{"a pilot that has begun runs to its end", runs},
		{"how a pilot ended is seen", ends},
		{"a preempted pilot says so before it ends", preempted},
		{"pilots are cancelled by name", cancels},
		{"who is not there is cancelled all the same", cancelsNobody},
		{"many are cancelled at once", cancelsMany},
		{"a cancelled pilot that comes back is seen, and cancelled again", revived},
		{"an id that is given again harms nobody", reused},
		{"pilots of another daemon are neither seen nor cancelled", strangers},
		{"a silent host is Unavailable, and nothing is made up", silent},
		{"who is asked while the context is over answers at once", overdue},
		{"an answer that is lost is Unavailable, and the pilot is there", deaf},
		{"a refusal says so, and the pilot is not there", refused},
		{"both copies of a pilot are seen, and cancelled", doubled},
		{"a trial leaves nothing behind", tries},
		{"a trial says what is refused", triesRefused},
		{"a pilot that can't be is refused whole", unsound},
		{"the token is in nothing that people read", secrets},
		{"what is forgotten is not seen", forgotten},
		{"pilots are listed in order of name", ordered},
		{"calls may overlap", overlaps},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := open(t)
			p := host.Provider(ours)
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			c.do(&scene{t, host, p, step})
		})
	}
}

func (s *scene) pilot(name string) provider.Pilot {
	return provider.Pilot{Name: name, Length: 5 * s.step, Head: "head.example:7118", Token: secret}
}

// submit asks for pilots.
func (s *scene) submit(names ...string) {
	s.Helper()
	for _, name := range names {
		if err := s.Submit(s.Context(), s.pilot(name)); err != nil {
			s.Fatalf("submit %s: %v", name, err)
		}
	}
}

// copies are those of a pilot now.
func (s *scene) copies(name string) (list []provider.Seen) {
	s.Helper()
	look, err := s.Look(s.Context())
	if err != nil {
		s.Fatalf("look: %v", err)
	}
	for i := range look.Seen {
		if look.Seen[i].Name == name {
			list = append(list, look.Seen[i])
		}
	}
	return list
}

// is waits until the only copy of a pilot is in a state, and returns it. Ended: also one that is not there any more, as the zero Seen.
func (s *scene) is(name string, want provider.State) provider.Seen {
	s.Helper()
	var list []provider.Seen
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		list = s.copies(name)
		switch {
		case len(list) == 0 && want == provider.Ended:
			return provider.Seen{}
		case len(list) == 1 && list[0].State == want:
			return list[0]
		}
	}
	s.Fatalf("%s is seen as %+v, want one copy in state %d", name, list, want)
	return provider.Seen{}
}

// unavailable fails unless an error says that the host did not answer.
func (s *scene) unavailable(what string, err error) {
	s.Helper()
	if errkind.Of(err) != errkind.Unavailable {
		s.Errorf("%s: %v of kind %v, want one of kind unavailable", what, err, errkind.Of(err))
	}
}

func (s *scene) cancel(names ...string) {
	s.Helper()
	if err := s.Cancel(s.Context(), names); err != nil {
		s.Fatalf("cancel %v: %v", names, err)
	}
}

func waits(s *scene) {
	s.submit("pool-1")
	seen := s.is("pool-1", provider.Waiting)
	if seen.ID == "" || !seen.Began.IsZero() || seen.Preempted || seen.Failed {
		s.Errorf("%+v: want an id, and nothing of what comes later", seen)
	}
	if s.Describe() == "" {
		s.Error("it does not describe itself")
	}
}

func runs(s *scene) {
	s.submit("pool-1")
	s.is("pool-1", provider.Waiting)
	s.host.Start("pool-1")
	seen := s.is("pool-1", provider.Running)
	if seen.Began.IsZero() || seen.End.Sub(seen.Began) != 5*s.step {
		s.Errorf("it began at %v and ends at %v: want %v between them", seen.Began, seen.End, 5*s.step)
	}
	if seen.Preempted || seen.Failed {
		s.Errorf("%+v: want neither preempted nor failed", seen)
	}
}

func ends(s *scene) {
	s.submit("well", "ill")
	s.host.Start("well")
	s.host.Start("ill")
	s.is("well", provider.Running)
	s.is("ill", provider.Running)
	s.host.End("well", false)
	s.host.End("ill", true)
	if seen := s.is("well", provider.Ended); seen.Failed || seen.Preempted {
		s.Errorf("%+v ended by itself with 0", seen)
	}
	if seen := s.is("ill", provider.Ended); seen.Name != "" && !seen.Failed {
		s.Errorf("%+v failed, and is not said to", seen)
	}
}

func preempted(s *scene) {
	s.submit("pool-1")
	s.host.Start("pool-1")
	before := s.is("pool-1", provider.Running)
	s.host.Preempt("pool-1")
	list := s.copies("pool-1")
	if len(list) != 1 || !list[0].Preempted || list[0].State == provider.Waiting || !list[0].End.Before(before.End) {
		s.Errorf("seen as %+v: want one copy that is preempted, and ends before %v", list, before.End)
	}
}

func cancels(s *scene) {
	s.submit("waits", "runs", "stays")
	s.host.Start("runs")
	s.is("runs", provider.Running)
	s.cancel("waits", "runs")
	s.is("waits", provider.Ended)
	s.host.End("runs", false) // where the host waits for it
	if seen := s.is("runs", provider.Ended); seen.Failed {
		s.Errorf("%+v was cancelled, which is no failure", seen)
	}
	s.is("stays", provider.Waiting)
}

func cancelsNobody(s *scene) {
	s.cancel()
	s.cancel("nobody")
	s.submit("pool-1")
	s.cancel("pool-1", "nobody")
	s.cancel("pool-1")
	s.is("pool-1", provider.Ended)
}

func cancelsMany(s *scene) {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("pool-%02d", i))
	}
	s.submit(names...)
	s.cancel(append(names[1:], "nobody")...)
	look, err := s.Look(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, seen := range look.Seen {
		if (seen.State == provider.Waiting) != (seen.Name == names[0]) {
			s.Errorf("%+v: want all but %s cancelled", seen, names[0])
		}
	}
}

func revived(s *scene) {
	s.submit("pool-1")
	s.host.Save()
	s.cancel("pool-1")
	s.is("pool-1", provider.Ended)
	s.host.Crash()
	s.is("pool-1", provider.Waiting)
	s.cancel("pool-1")
	s.is("pool-1", provider.Ended)
}

func reused(s *scene) {
	s.submit("lost")
	first := s.is("lost", provider.Waiting)
	s.host.Crash()
	if list := s.copies("lost"); len(list) != 0 {
		s.Fatalf("%+v: want it lost by the crash", list)
	}
	s.submit("next")
	if next := s.is("next", provider.Waiting); next.ID != first.ID {
		s.Fatalf("the host gave id %s again as %s", first.ID, next.ID)
	}
	s.cancel("lost")
	s.is("next", provider.Waiting)
}

func strangers(s *scene) {
	other := s.host.Provider(theirs)
	defer other.Close()
	if err := other.Submit(s.Context(), s.pilot("pool-1")); err != nil {
		s.Fatal(err)
	}
	if list := s.copies("pool-1"); len(list) != 0 {
		s.Errorf("%+v is another daemon's", list)
	}
	s.cancel("pool-1")
	if look, err := other.Look(s.Context()); err != nil || len(look.Seen) != 1 || look.Seen[0].State != provider.Waiting {
		s.Errorf("the other daemon sees %+v, %v: want its pilot still waiting", look.Seen, err)
	}
}

func silent(s *scene) {
	s.submit("pool-1")
	s.host.Silence(true)
	ctx, end := context.WithTimeout(s.Context(), 10*time.Second)
	defer end()
	look, err := s.Look(ctx)
	s.unavailable("look", err)
	if len(look.Seen)+len(look.Gaps) > 0 {
		s.Errorf("it saw %+v of a silent host", look)
	}
	s.unavailable("submit", s.Submit(ctx, s.pilot("pool-2")))
	s.unavailable("cancel", s.Cancel(ctx, []string{"pool-1"}))
	_, err = s.Try(ctx, s.pilot("pool-2"))
	s.unavailable("try", err)
	s.host.Silence(false)
	s.is("pool-1", provider.Waiting)
}

func overdue(s *scene) {
	ctx, end := context.WithCancel(s.Context())
	end()
	_, err := s.Look(ctx)
	s.unavailable("look", err)
	s.unavailable("submit", s.Submit(ctx, s.pilot("pool-1")))
	s.unavailable("cancel", s.Cancel(ctx, []string{"pool-1"}))
}

func deaf(s *scene) {
	s.host.Deafen(true)
	s.unavailable("submit", s.Submit(s.Context(), s.pilot("pool-1")))
	s.host.Deafen(false)
	s.is("pool-1", provider.Waiting)
	s.cancel("pool-1")
	s.is("pool-1", provider.Ended)
}

func refused(s *scene) {
	s.host.Refuse(errkind.Errorf(errkind.Exhausted, "too many of yours are here"))
	err := s.Submit(s.Context(), s.pilot("pool-1"))
	if err == nil || errkind.Of(err) == errkind.Unavailable || errkind.Of(err) == errkind.Unknown {
		s.Errorf("%v of kind %v: want a refusal of another kind", err, errkind.Of(err))
	}
	if list := s.copies("pool-1"); len(list) != 0 {
		s.Errorf("%+v was refused", list)
	}
	s.host.Refuse(nil)
	s.submit("pool-1")
	s.is("pool-1", provider.Waiting)
}

func doubled(s *scene) {
	s.submit("pool-1")
	s.host.Start("pool-1")
	s.is("pool-1", provider.Running)
	s.host.Double("pool-1")
	list := s.copies("pool-1")
	if len(list) != 2 || list[0].ID == list[1].ID {
		s.Fatalf("%+v: want two copies of their own ids", list)
	}
	s.cancel("pool-1")
	s.host.End("pool-1", false)
	for _, seen := range s.copies("pool-1") {
		if seen.State != provider.Ended && seen.State != provider.Ending {
			s.Errorf("%+v was cancelled", seen)
		}
	}
}

func tries(s *scene) {
	trial, err := s.Try(s.Context(), s.pilot("pool-1"))
	if _, cannot := s.host.(Untried); cannot {
		s.unsupported(trial, err)
	} else if err != nil || !trial.Taken || trial.Command == "" {
		s.Errorf("%+v, %v: want it taken, and what was asked", trial, err)
	}
	if list := s.copies("pool-1"); len(list) != 0 {
		s.Errorf("a trial left %+v", list)
	}
}

// unsupported fails unless a trial says that it can't be made, and nothing else.
func (s *scene) unsupported(trial provider.Trial, err error) {
	s.Helper()
	if errkind.Of(err) != errkind.Unsupported || trial != (provider.Trial{}) {
		s.Errorf("%+v, %v of kind %v: want one of kind unsupported, and nothing guessed", trial, err, errkind.Of(err))
	}
}

func triesRefused(s *scene) {
	s.host.Refuse(errkind.Errorf(errkind.Invalid, "no such account"))
	trial, err := s.Try(s.Context(), s.pilot("pool-1"))
	if _, cannot := s.host.(Untried); cannot {
		s.unsupported(trial, err)
	} else if err != nil || trial.Taken || trial.Why == "" {
		s.Errorf("%+v, %v: want it not taken, and the host's words", trial, err)
	}
}

func unsound(s *scene) {
	bad := provider.Pilot{Name: "../Pool 1\n", Length: s.step/2 + 1}
	err := s.Submit(s.Context(), bad)
	if errkind.Of(err) != errkind.Invalid {
		s.Fatalf("%v: want an error of kind invalid", err)
	}
	for _, part := range []string{"name", "length", "head", "token"} {
		if !strings.Contains(err.Error(), part) {
			s.Errorf("%v: nothing of its %s", err, part)
		}
	}
	for _, name := range []string{"", "-a", "a-", "a_b", "a/b", "A", strings.Repeat("a", 41), "a\x00", "a$(id)", "a;b"} {
		p := s.pilot(name)
		if err := s.Submit(s.Context(), p); errkind.Of(err) != errkind.Invalid {
			s.Errorf("name %q: %v, want invalid", name, err)
		}
	}
	if look, err := s.Look(s.Context()); err != nil || len(look.Seen) > 0 {
		s.Errorf("%+v, %v: want nothing asked for", look.Seen, err)
	}
}

func secrets(s *scene) {
	var said []string
	s.submit("pool-1")
	trial, err := s.Try(s.Context(), s.pilot("pool-2"))
	said = append(said, fmt.Sprintf("%+v %v", trial, err), s.Describe(), fmt.Sprintf("%+v", s.copies("pool-1")))
	s.host.Refuse(errkind.Errorf(errkind.Invalid, "no such account"))
	said = append(said, fmt.Sprint(s.Submit(s.Context(), s.pilot("pool-3"))))
	for _, text := range said {
		if strings.Contains(text, secret) {
			s.Errorf("the token is in %q", text)
		}
	}
}

func forgotten(s *scene) {
	s.submit("pool-1")
	s.host.Start("pool-1")
	s.is("pool-1", provider.Running)
	s.host.End("pool-1", false)
	s.is("pool-1", provider.Ended)
	s.host.Forget()
	if list := s.copies("pool-1"); len(list) != 0 {
		s.Errorf("%+v was forgotten", list)
	}
	s.cancel("pool-1")
}

func ordered(s *scene) {
	s.submit("c", "a", "b")
	look, err := s.Look(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if !slices.IsSortedFunc(look.Seen, func(a, b provider.Seen) int { return strings.Compare(a.Name, b.Name) }) || len(look.Seen) != 3 {
		s.Errorf("%+v: want three, by name", look.Seen)
	}
}

func overlaps(s *scene) {
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() {
			name := fmt.Sprintf("pool-%d", i)
			err := s.Submit(s.Context(), s.pilot(name))
			_, failed := s.Look(s.Context())
			errs[i] = errors.Join(err, failed, s.Cancel(s.Context(), []string{name}))
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
	for i := range errs {
		s.is(fmt.Sprintf("pool-%d", i), provider.Ended)
	}
}
