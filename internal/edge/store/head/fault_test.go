package head

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/local"
)

// saying is a store whose Stat ends with an error.
type saying struct {
	store.Store
	err error
}

func (s *saying) Stat(context.Context, store.Digest) (store.Object, error) {
	return store.Object{}, s.err
}

var someDigest = store.Digest(strings.Repeat("ab", 32))

// An error of the head's store is of the same kind at a machine, has the same text, and what the operating system said is found in it.
func TestErrorsKeepTheirKind(t *testing.T) {
	own, err := local.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bad := &saying{Store: own}
	s := serve(t, newAuthority(t), "", ServiceOptions{Store: bad}).join("n")
	check := func(err error) {
		t.Helper()
		bad.err = err
		_, got := s.Stat(t.Context(), someDigest)
		if got == nil || errkind.Of(got) != errkind.Of(err) || !strings.Contains(got.Error(), "the text") {
			t.Errorf("%v (%v) came as %v (%v)", err, errkind.Of(err), got, errkind.Of(got))
		}
		for _, e := range errnoTable {
			if errors.Is(got, e.err) != errors.Is(err, e.err) {
				t.Errorf("%v came as %v: is it %s?", err, got, e.name)
			}
		}
	}
	for k := errkind.Unknown; k <= errkind.Corrupt; k++ {
		check(errkind.Errorf(k, "the text"))
	}
	check(errors.New("the text of nobody"))
	for _, e := range errnoTable {
		check(errkind.Errorf(errkind.Exhausted, "the text: %w", e.err))
	}
	check(fmt.Errorf("the text: %w", unix.ENOTEMPTY)) // one that nobody looks for
	check(errkind.Errorf(errkind.Corrupt, "the text\x00\xff\n%s", strings.Repeat("long ", 100_000)))
}

// Without the store's own word nothing is taken for missing or damaged: a proxy, a strange server or a broken connection may say anything.
func TestAnErrorOfTheConnectionIsNoWordOfTheStore(t *testing.T) {
	for _, c := range []struct {
		code  connect.Code
		kind  errkind.Kind
		again bool
	}{
		{connect.CodeNotFound, errkind.Unavailable, true},
		{connect.CodeDataLoss, errkind.Unavailable, true},
		{connect.CodeInternal, errkind.Unavailable, true},
		{connect.CodeUnknown, errkind.Unavailable, true},
		{connect.CodeUnavailable, errkind.Unavailable, true},
		{connect.CodeDeadlineExceeded, errkind.Unavailable, true},
		{connect.CodePermissionDenied, errkind.Denied, false},
		{connect.CodeUnauthenticated, errkind.Denied, false},
		{connect.CodeUnimplemented, errkind.Unsupported, false},
		{connect.CodeResourceExhausted, errkind.Unsupported, false},
	} {
		err, again := heard(t.Context(), "it", connect.NewError(c.code, errors.New("so")))
		if errkind.Of(err) != c.kind || again != c.again {
			t.Errorf("code %v: %v of kind %v, again %v; want %v, %v", c.code, err, errkind.Of(err), again, c.kind, c.again)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err, again := heard(ctx, "it", errors.New("so")); again || !errors.Is(err, context.Canceled) ||
		errkind.Of(err) != errkind.Unavailable {
		t.Errorf("a caller that has given up: %v, again %v", err, again)
	}
}

// Who is no machine of the cluster is told so, and why.
func TestAStranger(t *testing.T) {
	own, err := local.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, newAuthority(t), "", ServiceOptions{Store: own, Caller: func(context.Context) (job.NodeID, error) {
		return "", errkind.Errorf(errkind.Denied, "machine n was removed")
	}}).join("n")
	_, err = s.Now(t.Context())
	_, put := s.Put(t.Context(), "", strings.NewReader("x"))
	_, opened := s.Open(t.Context(), someDigest)
	for _, err := range []error{err, put, opened} {
		if errkind.Of(err) != errkind.Denied || !strings.Contains(err.Error(), "was removed") {
			t.Error(err)
		}
	}
}
