package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/drive"
)

// forAgents bounds the calls of agents apart from those of people, so that no number of agents, and nothing that one of them
// does, keeps people from being answered. An agent has a job's key and need not know the daemon's token. How often it may call
// is counted where its session is known; here it is how many at once, how long, and how slowly.
func (r refusal) forAgents(next http.Handler) http.Handler {
	open := make(chan struct{}, MaxAgentCalls)
	bodies := make(chan struct{}, maxAgentBodies)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case open <- struct{}{}:
			defer func() { <-open }()
		default:
			r.refuse(w, req, connect.CodeResourceExhausted, http.StatusTooManyRequests, fmt.Sprintf("%d calls of agents are open at once: try again when some have ended", MaxAgentCalls))
			return
		}
		now := time.Now()
		slow := http.NewResponseController(w)
		// Both may be unsupported in tests without a connection: then there is nobody who could be slow.
		_ = slow.SetReadDeadline(now.Add(agentTime))
		_ = slow.SetWriteDeadline(now.Add(agentTime + drive.MaxWait + agentTime))
		body, err := readAgent(w, req, bodies)
		if err != nil {
			w.Header().Set("Connection", "close")
			r.refuse(w, req, Code(errkind.Of(err)), http.StatusBadRequest, err.Error())
			return
		}
		_ = slow.SetReadDeadline(time.Time{}) // from here on the agent waits, and may hang up
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, req)
	})
}

// readAgent reads a call whole. Long ones take turns.
func readAgent(w http.ResponseWriter, req *http.Request, bodies chan struct{}) ([]byte, error) {
	if req.ContentLength < 0 || req.ContentLength > smallAgentBytes {
		select {
		case bodies <- struct{}{}:
			defer func() { <-bodies }()
		default:
			return nil, errkind.Errorf(errkind.Exhausted, "too many long calls of agents at once: try again")
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxAgentBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, errkind.Errorf(errkind.Exhausted, "the call has more than %d bytes: answer with fewer variants", MaxAgentBytes)
	case err != nil:
		return nil, errkind.Errorf(errkind.Unavailable, "the call did not arrive whole within %v: %w", agentTime, err)
	}
	return body, nil
}
