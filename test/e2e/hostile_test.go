package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// hostile is somebody with the keys of two jobs and bad intentions.
type hostile struct {
	url, evil, flood string
	stop             chan struct{}
	// sent calls, and answers to rounds among them. What is denied is told to who answers in time, which nobody does for sure.
	sent, answers atomic.Int64
}

// during repeats an attack until it is stopped, with a moment in between: what is tried here is not to use up the machine.
func (h *hostile) during(attack func()) {
	for {
		select {
		case <-h.stop:
			return
		case <-time.After(5 * time.Millisecond):
			attack()
		}
	}
}

// garbage is no JSON, or other JSON, or too much of it.
func (h *hostile) garbage() {
	n := 0
	h.during(func() {
		n++
		switch n % 4 {
		case 0:
			h.post(randomBytes(10_000))
		case 1:
			h.post([]byte(strings.Repeat("[", 50_000)))
		case 2:
			h.post([]byte(`{"job": "evil", "session": "1", "answers": [` + strings.Repeat(`{"round": 1},`, 10_000) + `{}]}`))
		case 3:
			h.post([]byte(`{"job": "` + strings.Repeat("x", 3<<20) + `"}`))
		}
	})
}

// lies answers every round with variants that break the rules, now with a few, now with thousands.
func (h *hostile) lies() {
	session := any("0")
	h.during(func() {
		heard := h.post(mustJSON(map[string]any{"job": "evil", "key": h.evil, "session": session, "wait": "0.1s"}))
		if heard == nil {
			session = "0"
			return
		}
		session = heard["session"]
		events, _ := heard["events"].([]any)
		for _, e := range events {
			call, ok := e.(map[string]any)["call"].(map[string]any)
			if !ok {
				continue
			}
			w := call["windows"].([]any)[0].(map[string]any)
			answer := map[string]any{"round": call["round"], "variants": nonsense(w["window"].(string), w["start"].(string),
				20+1980*int((h.answers.Add(1)+1)%2))}
			h.post(mustJSON(map[string]any{"job": "evil", "session": session, "answers": []any{answer, answer}}))
		}
	})
}

// sessions opens one after another, each of which supersedes the last.
func (h *hostile) sessions() {
	h.during(func() { h.post(mustJSON(map[string]any{"job": "flood", "key": h.flood, "wait": "0.01s"})) })
}

// strangers guess keys and sessions of somebody else's job.
func (h *hostile) strangers() {
	h.during(func() {
		h.post(mustJSON(map[string]any{"job": "honest", "key": h.evil}))
		h.post(mustJSON(map[string]any{"job": "honest", "session": "12345", "answers": []any{map[string]any{"round": "1"}}}))
	})
}

// nonsense is variants that break every rule, among some that break none.
func nonsense(window, start string, n int) []any {
	var out []any
	for i := range n {
		v := map[string]any{
			"id": i, "window": window, "range": map[string]any{"from": i % 7 * 100, "to": i%7*100 + 1 + i}, "start": start,
			"run": "1s", "wall": fmt.Sprintf("%ds", 1+i%5000), "memoryBytes": fmt.Sprint(i % 3 * 1 << 30), "score": 1,
		}
		switch i % 5 {
		case 1:
			v["window"] = "999999"
		case 2:
			v["start"] = "2199-01-01T00:00:00Z"
		case 3:
			v["range"] = map[string]any{"from": "9223372036854775806", "to": "9223372036854775807"}
		case 4:
			v["option"] = "none-of-yours"
		}
		out = append(out, v)
	}
	return out
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (package crypto/rand)
	return b
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// post sends a body and returns the answer, nil if there is none.
func (h *hostile) post(body []byte) (answer map[string]any) {
	h.sent.Add(1)
	resp, err := http.Post(h.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil // it may be refused in any way
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return answer
}
