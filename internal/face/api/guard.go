package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1/sluicev1alpha1connect"
)

// loopback says whether a host name or address can only mean this machine.
func loopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// hostOf is the host part of an address that may or may not have a port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// refusal answers in the form the caller speaks: gRPC, Connect, or plain text for everything else.
type refusal struct{ writer *connect.ErrorWriter }

func (r refusal) refuse(w http.ResponseWriter, req *http.Request, code connect.Code, status int, text string) {
	if r.writer.IsSupported(req) {
		_ = r.writer.Write(w, req, connect.NewError(code, errors.New(text))) // the caller has gone away
		return
	}
	http.Error(w, text, status)
}

// onlyHere refuses requests that name this server by another name than this machine's own. A page on a hostile site can
// make its own name mean 127.0.0.1 (DNS rebinding); it can't make the browser send another Host.
func (r refusal) onlyHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !loopback(hostOf(req.Host)) {
			r.refuse(w, req, connect.CodePermissionDenied, http.StatusForbidden,
				fmt.Sprintf("host %.80q is not this machine: call the daemon as 127.0.0.1 or localhost, or start it with a token", req.Host))
			return
		}
		next.ServeHTTP(w, req)
	})
}

// sameSite refuses what a browser sends on behalf of another site's page.
func (r refusal) sameSite(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := guard.Check(req); err != nil {
			r.refuse(w, req, connect.CodePermissionDenied, http.StatusForbidden, "a page of another site may not call this daemon: "+err.Error())
			return
		}
		next.ServeHTTP(w, req)
	})
}

// bearer lets only those in who know the token. Hashes of one length are compared, so the time taken says nothing.
func (r refusal) bearer(secret string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(secret))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		scheme, given, _ := strings.Cut(req.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given)))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			r.refuse(w, req, connect.CodeUnauthenticated, http.StatusUnauthorized,
				"this daemon wants a token: give the one it was started with (--token or SLUICE_TOKEN; header Authorization: Bearer TOKEN)")
			return
		}
		next.ServeHTTP(w, req)
	})
}

// bounded limits how many calls are open, how many come in a second, and how large a body is.
func (r refusal) bounded(next http.Handler) http.Handler {
	open := make(chan struct{}, MaxCalls)
	var rate bucket
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case open <- struct{}{}:
			defer func() { <-open }()
		default:
			r.refuse(w, req, connect.CodeResourceExhausted, http.StatusTooManyRequests, fmt.Sprintf("%d calls are open at once: try again when some have ended", MaxCalls))
			return
		}
		if !rate.take(time.Now()) {
			r.refuse(w, req, connect.CodeResourceExhausted, http.StatusTooManyRequests, fmt.Sprintf("more than %d calls a second: slow down and try again", Rate))
			return
		}
		limit := int64(maxCallBytes)
		if req.URL.Path == pb.SluiceServiceSubmitProcedure {
			limit = maxSubmitBytes
		}
		req.Body = http.MaxBytesReader(w, req.Body, limit)
		next.ServeHTTP(w, req)
	})
}

// queued holds all but a few requests back, so that large bodies are not all in memory at once.
func (r refusal) queued(places chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, req)
		case <-req.Context().Done():
			r.refuse(w, req, connect.CodeUnavailable, http.StatusServiceUnavailable, "too many submissions at once: try again")
		}
	})
}

// bucket is a token bucket of Burst that fills with Rate a second. The zero value is full.
type bucket struct {
	mu   sync.Mutex
	used float64
	last time.Time
}

func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := now.Sub(b.last); d > 0 {
		b.used = max(0, b.used-d.Seconds()*Rate)
		b.last = now
	}
	if b.used+1 > Burst {
		return false
	}
	b.used++
	return true
}
