package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store/s3"
)

// early is a server that calls uploads complete before their object is there: after a time, or never if it is one of the first lost.
type early struct {
	takes time.Duration
	lost  int

	there   time.Time
	uploads int
}

func (e *early) RoundTrip(r *http.Request) (*http.Response, error) {
	text, status, q := "", http.StatusOK, r.URL.Query()
	switch {
	case r.Method == http.MethodPost && q.Has("uploads"):
		e.uploads++
		text = fmt.Sprintf("<InitiateMultipartUploadResult><UploadId>%d</UploadId></InitiateMultipartUploadResult>", e.uploads)
	case r.Method == http.MethodPost:
		if e.uploads > e.lost && e.there.IsZero() {
			e.there = time.Now().Add(e.takes)
		}
		text = "<CompleteMultipartUploadResult><Bucket>bucket</Bucket></CompleteMultipartUploadResult>"
	case q.Has("uploads"):
		text = "<ListMultipartUploadsResult></ListMultipartUploadsResult>"
	case q.Has("list-type"):
		text = "<ListBucketResult></ListBucketResult>"
	case r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/objects/"):
		if e.there.IsZero() || time.Now().Before(e.there) {
			status = http.StatusNotFound
		}
	case r.Method == http.MethodHead:
		status = http.StatusNotFound
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/xml"},
			"Last-Modified": {time.Now().UTC().Format(http.TimeFormat)}, "Etag": {`"x"`}},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, nil
}

// TestAnUploadIsBelievedOnceItsObjectIsThere: a server may call an upload complete that it still puts together for somebody else, and fail
// afterwards.
func TestAnUploadIsBelievedOnceItsObjectIsThere(t *testing.T) {
	data := make([]byte, 6<<20)
	for name, c := range map[string]struct {
		server  early
		uploads int
		fails   errkind.Kind
	}{
		"at once":                   {early{}, 1, errkind.Unknown},
		"after two seconds":         {early{takes: 2 * time.Second}, 1, errkind.Unknown},
		"not of the first two":      {early{lost: 2}, 3, errkind.Unknown},
		"never":                     {early{lost: 1 << 20}, 5, errkind.Unavailable},
		"the first lost, then late": {early{lost: 1, takes: time.Second}, 2, errkind.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := s3.New((&server{}).options(&c.server))
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err = s.Put(t.Context(), digestOf(data), bytes.NewReader(data))
				if errkind.Of(err) != c.fails || (err == nil) != (c.fails == errkind.Unknown) {
					t.Errorf("it ends with %v", err)
				}
				if c.server.uploads != c.uploads {
					t.Errorf("%d uploads, want %d", c.server.uploads, c.uploads)
				}
				if spent := time.Since(began); spent > 5*11*time.Second {
					t.Errorf("it waits for %s", spent)
				}
			})
		})
	}
}

// TestWhoWaitsForAnObjectCanBeStopped.
func TestWhoWaitsForAnObjectCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := s3.New((&server{}).options(&early{lost: 1 << 20}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		data := make([]byte, 6<<20)
		if _, err := s.Put(ctx, digestOf(data), bytes.NewReader(data)); err == nil || time.Since(began) > 4*time.Second {
			t.Errorf("stopped after %s with %v", time.Since(began), err)
		}
	})
}
