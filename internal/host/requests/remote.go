package requests

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/host/inbox"
)

// Here is the address of people who ask a daemon that machines have joined, as its machines know it: their own have none.
func Here() protocol.Address { return protocol.Address{Role: protocol.Person, ID: "head"} }

// sayAgain is how often a request to another machine is repeated: links lose messages, and nodes take a request once.
const sayAgain = 2 * time.Second

// Remote sends people's requests to nodes on other machines, which answer through the fabric. Safe for concurrent use.
type Remote struct {
	send  func(protocol.Message)
	calls *Calls
}

// NewRemote returns a Remote that hears answers from now on. Errors are those of Fabric.Attach.
func NewRemote(f fabric.Fabric) (*Remote, error) {
	r := &Remote{send: f.Send, calls: NewCalls()}
	return r, f.Attach(Here(), r.hear)
}

// key of a request to a node: what another node answers under the same request is not its answer.
func key(node protocol.Address, request string) string { return node.ID + "\x00" + request }

// hear takes the answer of a node, which the fabric has authenticated.
func (r *Remote) hear(m protocol.Message) {
	if said, ok := m.Body.(*protocol.Receipt); ok && m.Kind == protocol.Reply {
		r.calls.reply(key(m.From, said.Request), answer{reply: m})
	}
}

// call sends a request, which has an id, to a node and waits for its answer, which is durable there.
func (r *Remote) call(ctx context.Context, m protocol.Message) (protocol.Message, error) {
	request := m.Body.(protocol.Requested).RequestID()
	m.From = Here()
	k := key(m.To, request)
	w, err := r.calls.add(k, m.Kind)
	if err != nil {
		return protocol.Message{}, err
	}
	defer r.calls.remove(k, w)
	again := time.NewTicker(sayAgain)
	defer again.Stop()
	for r.send(m); ; r.send(m) {
		select {
		case a := <-w:
			if a.err == nil {
				a.err = a.reply.Body.(*protocol.Receipt).Err
			}
			return a.reply, a.err
		case <-again.C:
		case <-ctx.Done():
			return protocol.Message{}, errkind.Errorf(errkind.Unavailable, "machine %s has not answered request %s yet, it may still take "+
				"effect: ask again with the same request id: %w", m.To.ID, request, ctx.Err())
		}
	}
}

// Close answers everybody who waits.
func (r *Remote) Close() { r.calls.Close(inbox.ErrStopping()) }
