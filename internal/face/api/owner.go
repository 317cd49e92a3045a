package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"sluice.dev/sluice/internal/edge/users"
)

// given is the token that a request carries; empty: none.
func given(req *http.Request) string {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// same compares a token with a secret, if there is one. Hashes of one length are compared, so the time taken reveals nothing.
func same(token, secret string) bool {
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(secret))
	return secret != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// identified finds out who calls, says so in the call's context, and refuses whom nobody knows. The daemon's own user, whom the kernel
// names, is an admin without a token, unless one was given to the daemon: then all must show it or one of a user's. So is whoever shows the
// token that only the daemon's user can read. Root is no exception: it can read the token, and what speaks as root may do so for somebody
// else. A user is known by the token alone, and what it began ends with it. A request that came by no door is the daemon's own: the caller
// of Handler sees to that.
func (r refusal) identified(o *Options, next http.Handler) http.Handler {
	own := &users.Caller{Name: o.Self, Role: users.Admin, Own: true}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		refuse := func(text string) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			r.refuse(w, req, connect.CodeUnauthenticated, http.StatusUnauthorized, text)
		}
		ctx, v, token := req.Context(), visitOf(req.Context()), given(req)
		switch {
		case same(token, o.Token), same(token, o.OwnerToken):
			v.prove()
		case o.Users != nil && users.IsToken(token):
			caller, gone, err := o.Users.Caller(token)
			if err != nil {
				refuse(err.Error())
				return
			}
			ends, end := context.WithCancelCause(users.With(ctx, caller))
			defer end(nil)
			defer context.AfterFunc(gone, func() { end(context.Cause(gone)) })()
			next.ServeHTTP(w, req.WithContext(ends))
			return
		case o.Token != "":
			refuse("this daemon wants a token: give your own, as `sluice user add` has printed it, or the one that the daemon was " +
				"started with (--token or SLUICE_TOKEN; header Authorization: Bearer TOKEN)")
			return
		case !loopback(hostOf(req.Host)):
			r.elsewhere(w, req)
			return
		case v != nil && !(v.named && v.uid == v.door.uid):
			refuse(v.stranger(o))
			return
		}
		next.ServeHTTP(w, req.WithContext(users.With(ctx, own)))
	})
}

// stranger says to somebody else whose daemon this is, and what can be done.
func (v *visit) stranger(o *Options) string {
	you := "the kernel does not say which user calls"
	if v.named {
		you = fmt.Sprintf("you are user %d", v.uid)
	}
	if o.Users != nil && !o.Users.Single() {
		return fmt.Sprintf("this daemon knows its users by their tokens, and %s: show yours in SLUICE_TOKEN, as `sluice user add` has "+
			"printed it; an admin gives you one", you)
	}
	what := fmt.Sprintf("this daemon serves user %d alone, as whom all that is submitted runs, and %s", v.door.uid, you)
	if o.OwnerToken == "" {
		return what
	}
	return fmt.Sprintf("%s: start a daemon of your own, or show its token, which only that user and root can read: SLUICE_TOKEN=\"$(cat "+
		"%s)\"", what, o.OwnerTokenFile)
}
