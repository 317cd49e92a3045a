package requests

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/trouble"
)

// caller sends a person's messages to the actors, and waits for their answers. Nothing is sent while nothing can be made durable.
type caller struct {
	inbox   *inbox.Inbox
	calls   *Calls
	trouble *trouble.State
	// remote sends those to nodes that are not local; nil: all are.
	remote func(context.Context, protocol.Message) (protocol.Message, error)
	local  func(job.NodeID) bool
}

// call is a person's message that was sent, with the waiter for its answer.
type call struct {
	request string
	waiter
}

func gate() protocol.Address { return protocol.Address{Role: protocol.Gate} }

// tell sends a request to the gate and waits until the answer is durable.
func (c *caller) tell(ctx context.Context, k protocol.Kind, name job.ID, body protocol.Body) (protocol.Message, error) {
	return c.call(ctx, protocol.Message{Kind: k, To: gate(), Body: body, Job: name})
}

// call sends a person's message to an actor and waits until its answer is durable.
func (c *caller) call(ctx context.Context, m protocol.Message) (protocol.Message, error) {
	if c.remote != nil && m.To.Role == protocol.Node && !c.local(job.NodeID(m.To.ID)) {
		return c.remote(ctx, m)
	}
	sent, err := c.send(m)
	if err != nil {
		return protocol.Message{}, err
	}
	reply, _, err := c.answer(ctx, sent)
	return reply, err
}

// send sends a person's message, which has a request, to an actor. Messages are taken in the order in which they were sent.
func (c *caller) send(m protocol.Message) (*call, error) {
	if err := c.trouble.Stopped(); err != nil {
		return nil, err
	}
	request := m.Body.(protocol.Requested).RequestID()
	m.From = protocol.Address{Role: protocol.Person}
	w, err := c.calls.add(request, m.Kind)
	if err != nil {
		return nil, err
	}
	if err := c.inbox.Call(m); err != nil {
		c.calls.remove(request, w)
		return nil, err
	}
	return &call{request, w}, nil
}

// answer waits until the answer to a message is durable.
func (c *caller) answer(ctx context.Context, sent *call) (protocol.Message, journal.Position, error) {
	select {
	case a := <-sent.waiter:
		if a.err == nil {
			a.err = a.reply.Body.(*protocol.Receipt).Err
		}
		return a.reply, a.position, a.err
	case <-ctx.Done():
		return protocol.Message{}, journal.Position{}, errkind.Errorf(errkind.Unavailable,
			"no answer to request %s yet, it may still take effect: ask again with the same request id: %w", sent.request, ctx.Err())
	}
}

// asker is who calls, as the gate knows them; the zero value is the daemon itself.
func asker(ctx context.Context) protocol.Asker {
	if c := users.Of(ctx); c != nil {
		return c.Asker()
	}
	return protocol.Asker{}
}

// named returns the request's id, a new one for a caller that gave none. Ids of the daemon's users are each one's own: the same from
// two of them are two requests.
func named(ctx context.Context, request string) string {
	if request != "" {
		if c := users.Of(ctx); c != nil && !c.Own {
			return c.Name + "/" + request
		}
		return request
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails (package crypto/rand)
	return "r-" + hex.EncodeToString(b[:])
}

// answer is what a waiting call gets: a Reply that is durable, or why there is none.
type answer struct {
	reply    protocol.Message
	position journal.Position
	err      error
}

// Calls are the people waiting for a Reply, by request id. Replies come in the order of the calls that share an id, since one actor
// answers them all. Safe for concurrent use.
type Calls struct {
	mu      sync.Mutex
	waiting map[string][]waiter
	kinds   map[string]protocol.Kind
	closed  error
}

type waiter chan answer // capacity 1

// NewCalls returns an empty set.
func NewCalls() *Calls {
	return &Calls{waiting: map[string][]waiter{}, kinds: map[string]protocol.Kind{}}
}

// add registers a call before it is sent. Two different calls under one id at the same time can't be told apart.
func (c *Calls) add(request string, k protocol.Kind) (waiter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return nil, c.closed
	}
	if have, ok := c.kinds[request]; ok && have != k {
		return nil, errkind.Errorf(errkind.Conflict, "request id %q is in use by another call that has not ended: use a new id for each "+
			"call", request)
	}
	w := make(waiter, 1)
	c.kinds[request] = k
	c.waiting[request] = append(c.waiting[request], w)
	return w, nil
}

// remove takes back a call that was never sent.
func (c *Calls) remove(request string, w waiter) {
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

func (c *Calls) set(request string, list []waiter) {
	if len(list) == 0 {
		delete(c.waiting, request)
		delete(c.kinds, request)
		return
	}
	c.waiting[request] = list
}

// Reply hands a Reply to the first call waiting under its id. There may be none: the daemon restarted in between.
func (c *Calls) Reply(m protocol.Message, p journal.Position) {
	c.reply(m.Body.(*protocol.Receipt).Request, answer{reply: m, position: p})
}

// reply hands an answer to the first call waiting under an id.
func (c *Calls) reply(request string, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.waiting[request]
	if len(list) == 0 {
		return
	}
	list[0].give(a)
	c.set(request, list[1:])
}

// Interrupt answers everybody with err and keeps them registered: their replies may still come and must not go to others.
func (c *Calls) Interrupt(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.waiting {
		for _, w := range list {
			w.give(answer{err: err})
		}
	}
}

// Close answers everybody, now and later, with err.
func (c *Calls) Close(err error) {
	c.Interrupt(err)
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
