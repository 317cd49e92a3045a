package api

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
)

// A call that is too large is answered 413, which says that trying again is of no use. Connect has one code, and one status, 429,
// for this and for too many calls. Its code stays: resource_exhausted.

// sized serves unary calls of Connect, whose handlers refuse a body before an interceptor sees the call: then 429 can only mean
// that the message, perhaps when it was unpacked, is too large.
func sized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		l := &largeWriter{ResponseWriter: w}
		next.ServeHTTP(l, req.WithContext(context.WithValue(req.Context(), readKey{}, &l.read)))
	})
}

// readKey is where a call's context has the note that its body was read.
type readKey struct{}

// reading notes that a call's body was read.
func reading(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if read, ok := ctx.Value(readKey{}).(*bool); ok {
			*read = true
		}
		return next(ctx, req)
	}
}

// largeWriter answers 413 in place of 429 until the body was read.
type largeWriter struct {
	http.ResponseWriter
	read bool
}

// WriteHeader is part of http.ResponseWriter.
func (l *largeWriter) WriteHeader(status int) {
	if status == http.StatusTooManyRequests && !l.read {
		status = http.StatusRequestEntityTooLarge
	}
	l.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (l *largeWriter) Unwrap() http.ResponseWriter { return l.ResponseWriter }
