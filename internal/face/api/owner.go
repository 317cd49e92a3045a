package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"connectrpc.com/connect"
)

// shown reports whether a request carries a token. Hashes of one length are compared, so the time taken reveals nothing.
func shown(req *http.Request, secret string) bool {
	scheme, given, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(strings.TrimSpace(given))), sha256.Sum256([]byte(secret))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// bearer lets only those in who show the token.
func (r refusal) bearer(secret string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !shown(req, secret) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			r.refuse(w, req, connect.CodeUnauthenticated, http.StatusUnauthorized,
				"this daemon wants a token: give the one it was started with (--token or SLUICE_TOKEN; header Authorization: Bearer TOKEN)")
			return
		}
		visitOf(req.Context()).prove()
		next.ServeHTTP(w, req)
	})
}

// owned lets the daemon's own user in, whom the kernel names, and callers that show the token that only that user can read: what is
// submitted runs as that user. Root is no exception: it can read the token, and what speaks as root may do so for somebody
// else. A request that came by no door is let in: the caller of Handler sees to that.
func (r refusal) owned(o *Options, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		v := visitOf(req.Context())
		if v != nil && !(v.named && v.uid == v.door.uid) {
			if o.OwnerToken == "" || !shown(req, o.OwnerToken) {
				w.Header().Set("WWW-Authenticate", "Bearer")
				r.refuse(w, req, connect.CodeUnauthenticated, http.StatusUnauthorized, v.stranger(o))
				return
			}
			v.prove()
		}
		next.ServeHTTP(w, req)
	})
}

// stranger says to somebody else whose daemon this is, and what can be done.
func (v *visit) stranger(o *Options) string {
	you := "the kernel does not say which user calls"
	if v.named {
		you = fmt.Sprintf("you are user %d", v.uid)
	}
	what := fmt.Sprintf("this daemon serves user %d alone, as whom all that is submitted runs, and %s", v.door.uid, you)
	if o.OwnerToken == "" {
		return what
	}
	return fmt.Sprintf("%s: start a daemon of your own, or show its token, which only that user and root can read: SLUICE_TOKEN=\"$(cat "+
		"%s)\"", what, o.OwnerTokenFile)
}
