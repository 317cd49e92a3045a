//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/store"
)

// shelved is a store of names alone, some of which can't be removed.
type shelved struct {
	store.Store
	names map[string][]string // by folder; nil for one that can't be listed to its end
	bad   string
	gone  []string
}

func (s *shelved) Names(_ context.Context, folder string, each func(store.Named) error) error {
	for _, n := range s.names[folder] {
		if n == "" {
			return errors.New(folder + " can't be listed")
		}
		if err := each(store.Named{Name: n}); err != nil {
			return err
		}
	}
	return nil
}

func (s *shelved) Unname(_ context.Context, name string) error {
	if strings.HasSuffix(name, s.bad) {
		return errors.New(name + " stays")
	}
	s.gone = append(s.gone, name)
	return nil
}

// TestOneBadNameKeepsNoOther: what can't be listed or removed is told, and the rest goes all the same.
func TestOneBadNameKeepsNoOther(t *testing.T) {
	s := &shelved{bad: "/2", names: map[string][]string{"a": {"a/1", "a/2", "a/3", "a/young"}, "b": {"b/1", "", "b/4"},
		"c": {"c/2", "c/5"}}}
	err := (&shelf{o: &Options{Store: s}}).unname(t.Context(), func(n store.Named) bool { return !strings.HasSuffix(n.Name, "young") },
		"a", "b", "c")
	if want := []string{"a/1", "a/3", "b/1", "c/5"}; !slices.Equal(s.gone, want) {
		t.Errorf("removed %v, want %v", s.gone, want)
	}
	for _, said := range []string{"b can't be listed", "a/2 stays", "c/2 stays"} {
		if err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("nobody is told that %s: %v", said, err)
		}
	}
}

// TestAPurgeStopsAtTheFirstError: nothing goes unless all is listed, and a store that refuses one name is not asked for thousands more.
func TestAPurgeStopsAtTheFirstError(t *testing.T) {
	at := &shelf{o: &Options{}}
	jobs, outputs := at.own().jobs("j"), at.own().outputs("j")
	for name, c := range map[string]struct {
		names map[string][]string
		gone  []string
		said  string
	}{
		"refused":    {map[string][]string{jobs: {"1/1", "1/2", "1/3"}, outputs: {"1/2"}}, []string{"1/1"}, "1/2 stays"},
		"not listed": {map[string][]string{jobs: {"1/1"}, outputs: {"1/4", ""}}, nil, outputs + " can't be listed"},
	} {
		s := &shelved{bad: "/2", names: c.names}
		at.o.Store = s
		if err := at.forget(t.Context(), "j", 0); err == nil || err.Error() != c.said || !slices.Equal(s.gone, c.gone) {
			t.Errorf("%s: %v, removed %v; want %s, %v", name, err, s.gone, c.said, c.gone)
		}
	}
}
