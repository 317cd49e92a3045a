package s3_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/s3"
)

// aged is a bucket with nothing in it but what was written to places, by how long ago that was.
type aged struct {
	places map[string]time.Duration

	mu      sync.Mutex
	dropped []string
}

func (a *aged) RoundTrip(r *http.Request) (*http.Response, error) {
	text, status, q := "", http.StatusOK, r.URL.Query()
	switch now := time.Now().UTC(); {
	case q.Has("uploads"):
		text = "<ListMultipartUploadsResult></ListMultipartUploadsResult>"
	case q.Has("list-type"):
		text = "<ListBucketResult>"
		for name, age := range a.places {
			if key := "some/prefix/incoming/" + name; strings.HasPrefix(key, q.Get("prefix")) {
				text += fmt.Sprintf("<Contents><Key>%s</Key><LastModified>%s</LastModified><Size>1</Size></Contents>", key,
					now.Add(-age).Format(time.RFC3339))
			}
		}
		text += "</ListBucketResult>"
	case r.Method == http.MethodDelete:
		a.mu.Lock()
		a.dropped = append(a.dropped, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
		a.mu.Unlock()
		status = http.StatusNoContent
	}
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/xml"},
			"Last-Modified": {time.Now().UTC().Format(http.TimeFormat)}, "Etag": {`"x"`}},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, nil
}

// TestWhatWasNotAdoptedYetStays: what Pods have left waits for their operator, who may be away for days, and whoever shares the bucket
// collects meanwhile. A URL lives for seven days at most: what is older than that by a day nobody adopts any more.
func TestWhatWasNotAdoptedYetStays(t *testing.T) {
	const day = 24 * time.Hour
	a := &aged{places: map[string]time.Duration{"now": 0, "friday": 3 * day, "a-week": 8 * day, "long-ago": 10 * day}}
	s, err := s3.New((&server{}).options(a))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Collect(t.Context(), s, store.LeastAge, false); err != nil {
		t.Fatal(err)
	}
	if want := []string{"long-ago"}; !slices.Equal(a.dropped, want) {
		t.Errorf("it drops %v, want %v", a.dropped, want)
	}
	if _, err := s.LendPut(t.Context(), "pods/x/output", store.Unadopted-day); err != nil {
		t.Errorf("a URL lives for as long as that: %v", err)
	}
	if _, err := s.LendPut(t.Context(), "pods/x/output", store.Unadopted-day+time.Second); err == nil {
		t.Error("a URL lives for longer, and what is written by it may be dropped too early")
	}
}
