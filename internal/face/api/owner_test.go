package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/users"
)

// TestOnlyTheOwnerIsLetIn: whom the kernel does not name is nobody, also where its number, unset, would be the daemon's.
func TestOnlyTheOwnerIsLetIn(t *testing.T) {
	const token = "0123456789abcdef"
	for _, c := range []struct {
		name, shows string
		visit       visit
		want        int
	}{
		{"the owner", "", visit{named: true, uid: 1000}, http.StatusOK},
		{"another user", "", visit{named: true, uid: 1001}, http.StatusUnauthorized},
		{"root", "", visit{named: true}, http.StatusUnauthorized},
		{"nobody", "", visit{}, http.StatusUnauthorized},
		{"nobody with the owner's number", "", visit{uid: 1000}, http.StatusUnauthorized},
		{"another user with the token", token, visit{named: true, uid: 1001}, http.StatusOK},
		{"nobody with the token", token, visit{}, http.StatusOK},
		{"nobody with another token", token + "x", visit{}, http.StatusUnauthorized},
	} {
		for _, secret := range []string{token, ""} {
			want := c.want
			if secret == "" && c.shows != "" { // there is none to show
				want = http.StatusUnauthorized
			}
			v := c.visit
			v.door = &door{uid: 1000, peers: map[string]int{}}
			req := httptest.NewRequest(http.MethodPost, "/", nil)
			req = req.WithContext(context.WithValue(req.Context(), visitKey{}, &v))
			req.Host = "127.0.0.1:7117"
			req.Header.Set("Authorization", "Bearer "+c.shows)
			w := httptest.NewRecorder()
			next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			refusal{connect.NewErrorWriter()}.identified(&Options{OwnerToken: secret}, next).ServeHTTP(w, req)
			if w.Code != want {
				t.Errorf("%s, the daemon's token %q: status %d, want %d", c.name, secret, w.Code, want)
			}
		}
	}
}

// TestAStreamThatNothingIsSaidOf is refused before its handler is asked, like any other procedure, and so is one that nobody calls.
func TestAStreamThatNothingIsSaidOf(t *testing.T) {
	admin := users.With(t.Context(), &users.Caller{Name: "root", Role: users.Admin, Own: true})
	for _, c := range []struct {
		ctx       context.Context
		procedure string
		refused   bool
	}{
		{admin, "/sluice.v1alpha1.SluiceService/Later", true},
		{admin, sluicev1alpha1connect.SluiceServiceLogsProcedure, false},
		{t.Context(), sluicev1alpha1connect.SluiceServiceLogsProcedure, true},
	} {
		asked := false
		next := rights{}.WrapStreamingHandler(func(context.Context, connect.StreamingHandlerConn) error { asked = true; return nil })
		if err := next(c.ctx, called{procedure: c.procedure}); asked == c.refused ||
			(connect.CodeOf(err) == connect.CodePermissionDenied) != c.refused {
			t.Errorf("%s: asked %v, %v", c.procedure, asked, err)
		}
	}
}

// called is a call of a procedure.
type called struct {
	connect.StreamingHandlerConn
	procedure string
}

func (c called) Spec() connect.Spec { return connect.Spec{Procedure: c.procedure} }

// TestAUserHasAShareOfTheCalls: whoever opens as many as there may be keeps neither other users nor admins from being answered.
func TestAUserHasAShareOfTheCalls(t *testing.T) {
	end, begun := make(chan struct{}), make(chan struct{})
	h := refusal{connect.NewErrorWriter()}.shared(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/wait" {
			begun <- struct{}{}
			<-end
		}
	}))
	call := func(path, name string, role users.Role) int {
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodPost, path, nil)
		h.ServeHTTP(w, req.WithContext(users.With(req.Context(), &users.Caller{Name: name, Role: role})))
		return w.Code
	}
	var waiting sync.WaitGroup
	for range MaxUserCalls {
		waiting.Go(func() { call("/wait", "bob", users.User) })
		<-begun
	}
	for name, c := range map[string]struct {
		role users.Role
		want int
	}{"bob": {users.User, http.StatusTooManyRequests}, "ada": {users.User, http.StatusOK}, "eve": {users.Operator, http.StatusOK},
		"root": {users.Admin, http.StatusOK}} {
		if got := call("/", name, c.role); got != c.want {
			t.Errorf("%s: status %d, want %d", name, got, c.want)
		}
	}
	close(end)
	waiting.Wait()
	if got := call("/", "bob", users.User); got != http.StatusOK {
		t.Errorf("afterwards: status %d", got)
	}
}
