package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
)

// answer is what a waiting call gets: a Reply that is durable, or why there is none.
type answer struct {
	reply    protocol.Message
	position journal.Position
	err      error
}

// calls are the people waiting for a Reply, by request id. Replies come in the order of the calls that share an id, since
// one actor answers them all.
type calls struct {
	mu      sync.Mutex
	waiting map[string][]waiter
	kinds   map[string]protocol.Kind
	closed  error
}

type waiter chan answer // capacity 1

func newCalls() *calls {
	return &calls{waiting: map[string][]waiter{}, kinds: map[string]protocol.Kind{}}
}

// add registers a call before it is sent. Two different calls under one id at the same time can't be told apart.
func (c *calls) add(request string, k protocol.Kind) (waiter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return nil, c.closed
	}
	if have, ok := c.kinds[request]; ok && have != k {
		return nil, errkind.Errorf(errkind.Conflict, "request id %q is in use by another call that has not ended: use a new id for each call", request)
	}
	w := make(waiter, 1)
	c.kinds[request] = k
	c.waiting[request] = append(c.waiting[request], w)
	return w, nil
}

// remove takes back a call that was never sent.
func (c *calls) remove(request string, w waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.waiting[request]
	for i := range list {
		if list[i] == w {
			c.set(request, append(list[:i:i], list[i+1:]...))
			return
		}
	}
}

func (c *calls) set(request string, list []waiter) {
	if len(list) == 0 {
		delete(c.waiting, request)
		delete(c.kinds, request)
		return
	}
	c.waiting[request] = list
}

// reply hands a Reply to the first call waiting under its id. Nobody may be waiting: the daemon restarted in between.
func (c *calls) reply(m protocol.Message, p journal.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	request := m.Body.(*protocol.Receipt).Request
	list := c.waiting[request]
	if len(list) == 0 {
		return
	}
	list[0].give(answer{reply: m, position: p})
	c.set(request, list[1:])
}

// interrupt answers everybody with err and keeps them registered: their replies may still come and must not go to others.
func (c *calls) interrupt(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.waiting {
		for _, w := range list {
			w.give(answer{err: err})
		}
	}
}

// close answers everybody, now and later, with err.
func (c *calls) close(err error) {
	c.interrupt(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = err
	clear(c.waiting)
	clear(c.kinds)
}

func (w waiter) give(a answer) {
	select {
	case w <- a:
	default: // answered already
	}
}

// call is a person's message that was sent, and who waits for its answer.
type call struct {
	request string
	waiter
}

// call sends a person's message to an actor and waits until its answer is durable.
func (h *Host) call(ctx context.Context, m protocol.Message) (protocol.Message, error) {
	c, err := h.send(m)
	if err != nil {
		return protocol.Message{}, err
	}
	reply, _, err := h.answer(ctx, c)
	return reply, err
}

// send sends a person's message, which has a request, to an actor. Messages are taken in the order in which they were sent.
func (h *Host) send(m protocol.Message) (*call, error) {
	if t := h.trouble.Load(); t != nil {
		return nil, t.err()
	}
	request := m.Body.(protocol.Requested).RequestID()
	m.From = protocol.Address{Role: protocol.Person}
	w, err := h.calls.add(request, m.Kind)
	if err != nil {
		return nil, err
	}
	if err := h.inbox.call(m); err != nil {
		h.calls.remove(request, w)
		return nil, err
	}
	return &call{request, w}, nil
}

// answer waits until the answer to a message is durable.
func (h *Host) answer(ctx context.Context, c *call) (protocol.Message, journal.Position, error) {
	select {
	case a := <-c.waiter:
		if a.err == nil {
			a.err = a.reply.Body.(*protocol.Receipt).Err
		}
		return a.reply, a.position, a.err
	case <-ctx.Done():
		return protocol.Message{}, journal.Position{}, errkind.Errorf(errkind.Unavailable,
			"no answer to request %s yet, it may still take effect: ask again with the same request id: %w", c.request, ctx.Err())
	}
}

// named is the request's id, and a new one for a caller that gave none.
func named(request string) string {
	if request != "" {
		return request
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails (package crypto/rand)
	return "r-" + hex.EncodeToString(b[:])
}
