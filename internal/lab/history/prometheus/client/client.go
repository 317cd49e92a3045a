// Package client asks a Prometheus, or what answers as one, for what package prometheus reads. It is apart from that because whoever reads
// files needs no network.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/prometheus"
)

// Server is a Prometheus, or what answers as one.
type Server struct {
	// URL of it, as far as /api/v1 is not said. Token is sent as a bearer's, if there is one.
	URL, Token string
	// Client asks.
	Client *http.Client
	// Step between samples.
	Step time.Duration
	// Progress is called with how many questions of how many are answered; nil if not wanted.
	Progress func(done, total int)
}

// questions of one range: a piece and what is asked.
type question struct {
	query    string
	from, to time.Time
}

// piece is how long the range of a question may be, in whole days where it is longer than one.
func piece(step time.Duration) time.Duration {
	long := (prometheus.MostPoints - 1) * step
	if days := long / (24 * time.Hour); days > 0 {
		return days * 24 * time.Hour
	}
	return long
}

// questions are the queries of [from, to], in pieces that Prometheus answers. Both ends lie on multiples of the step, so that all pieces
// have the instants of one grid.
func (s *Server) questions(from, to time.Time) (out []question) {
	from, to = from.Truncate(s.Step), to.Truncate(s.Step)
	long := piece(s.Step).Truncate(s.Step)
	for _, q := range prometheus.Queries() {
		for at := from; !at.After(to); at = at.Add(long) {
			end := at.Add(long - s.Step)
			if end.After(to) {
				end = to
			}
			out = append(out, question{q, at, end})
		}
	}
	return out
}

// Read asks for all that Queries names in [from, to] and puts it into the book. Errors are of kind Invalid (the address, or what Prometheus
// refuses), Denied, or Unavailable.
func (s *Server) Read(ctx context.Context, b *history.Book, from, to time.Time) error {
	base, err := url.Parse(s.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return errkind.Errorf(errkind.Invalid, "--prometheus %s: want the address of a Prometheus, such as http://prometheus:9090", s.URL)
	}
	if base.RawQuery != "" || base.Fragment != "" {
		return errkind.Errorf(errkind.Invalid, "--prometheus %s: want an address without ? and #", base.Redacted())
	}
	base = base.JoinPath("api", "v1", "query_range")
	all := s.questions(from, to)
	for i, q := range all {
		if err := s.ask(ctx, b, base, q); err != nil {
			return err
		}
		if s.Progress != nil {
			s.Progress(i+1, len(all))
		}
	}
	return nil
}

// ask puts the answer to one question into the book.
func (s *Server) ask(ctx context.Context, b *history.Book, base *url.URL, q question) error {
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', -1, 64) }
	at := *base
	at.RawQuery = url.Values{
		"query": {q.query}, "start": {seconds(q.from)}, "end": {seconds(q.to)},
		"step": {strconv.FormatFloat(s.Step.Seconds(), 'f', -1, 64)},
	}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return errkind.Errorf(errkind.Invalid, "--prometheus: %w", err)
	}
	if s.Token != "" {
		request.Header.Set("Authorization", "Bearer "+s.Token)
	}
	answer, err := s.Client.Do(request)
	if err != nil {
		return s.unanswered(ctx, q, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return s.refused(answer, q)
	}
	name := base.Host + "?" + q.query
	if _, err := prometheus.Put(b, answer.Body, name); err != nil { // of a file what stands before would count, but this can be asked again
		return s.unanswered(ctx, q, err)
	}
	return nil
}

func (q question) String() string {
	return fmt.Sprintf("%s from %s to %s", q.query, q.from.UTC().Format(time.RFC3339), q.to.UTC().Format(time.RFC3339))
}

// unanswered is the error of a question without a whole answer. The address may have a password in it, and is not shown.
func (s *Server) unanswered(ctx context.Context, q question, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	todo := "is the address right, and can it be reached from here?"
	var slow interface{ Timeout() bool }
	if errors.As(err, &slow) && slow.Timeout() {
		todo = "ask for less: a longer --step, or a shorter --since"
	}
	return errkind.Errorf(errkind.Unavailable, "ask Prometheus for %s: %w: %s", q, err, todo)
}

// refused is the error that Prometheus answers with.
func (s *Server) refused(answer *http.Response, q question) error {
	const most = 4 << 10
	text, _ := io.ReadAll(io.LimitReader(answer.Body, most)) // what there is of it
	var said struct{ ErrorType, Error string }
	why := answer.Status
	if json.Unmarshal(text, &said) == nil && said.Error != "" {
		why += ": " + strings.TrimPrefix(said.ErrorType+": "+said.Error, ": ")
	}
	kind, todo := errkind.Invalid, "is it the address of a Prometheus?"
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		kind, todo = errkind.Denied, "give a token that may ask with --prometheus-token FILE"
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		todo = "ask for less: a longer --step, or a shorter --since"
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusBadGateway, http.StatusTooManyRequests:
		kind = errkind.Unavailable
		todo = "it has too much to do, or this is too much at once: try again later, with a longer --step or a shorter --since"
	}
	return errkind.Errorf(kind, "ask Prometheus for %s: %s: %s", q, why, todo)
}
