package api

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"sluice.dev/sluice/internal/edge/users"
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
			r.elsewhere(w, req)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// elsewhere refuses a request that names this server as another machine.
func (r refusal) elsewhere(w http.ResponseWriter, req *http.Request) {
	r.refuse(w, req, connect.CodePermissionDenied, http.StatusForbidden,
		fmt.Sprintf("host %.80q is not this machine: call the daemon as 127.0.0.1 or localhost, or show a token", req.Host))
}

// sameSite refuses what a browser sends on behalf of another site's page.
func (r refusal) sameSite(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := guard.Check(req); err != nil {
			r.refuse(w, req, connect.CodePermissionDenied, http.StatusForbidden, "a page of another site may not call this daemon: "+
				err.Error())
			return
		}
		next.ServeHTTP(w, req)
	})
}

// bounded limits how many calls are open, and how many come in a second.
func (r refusal) bounded(next http.Handler) http.Handler {
	var rate bucket
	return r.places(MaxCalls, "calls", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !rate.take(time.Now()) {
			r.refuse(w, req, connect.CodeResourceExhausted, http.StatusTooManyRequests,
				fmt.Sprintf("more than %d calls a second: slow down and try again", Rate))
			return
		}
		next.ServeHTTP(w, req)
	}))
}

// shared holds each user but admins to a share of the open calls, so that none of them keeps others from being answered.
func (r refusal) shared(next http.Handler) http.Handler {
	var mu sync.Mutex
	open := map[string]int{}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c := users.Of(req.Context())
		if c == nil || c.Role == users.Admin {
			next.ServeHTTP(w, req)
			return
		}
		mu.Lock()
		full := open[c.Name] >= MaxUserCalls
		if !full {
			open[c.Name]++
		}
		mu.Unlock()
		if full {
			r.refuse(w, req, connect.CodeResourceExhausted, http.StatusTooManyRequests,
				fmt.Sprintf("user %s has %d calls open at once: try again when some have ended", c.Name, MaxUserCalls))
			return
		}
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			if open[c.Name]--; open[c.Name] == 0 {
				delete(open, c.Name)
			}
		}()
		next.ServeHTTP(w, req)
	})
}

// places holds a kind of call to a number of its own.
func (r refusal) places(most int, what string, next http.Handler) http.Handler {
	open := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case open <- struct{}{}:
			defer func() { <-open }()
			next.ServeHTTP(w, req)
		default:
			r.refuse(w, req, connect.CodeResourceExhausted, http.StatusTooManyRequests,
				fmt.Sprintf("%d %s are open at once: try again when some have ended", most, what))
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
