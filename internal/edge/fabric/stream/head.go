package stream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/fabric"
)

// HeadOptions of a head.
type HeadOptions struct {
	// Caller is the machine that the transport has authenticated as the caller, or an error that says why there is none.
	Caller func(context.Context) (job.NodeID, error)
	// Owns reports whether a token is of a machine (authority.Named, node.NumberOf): a message about another's token is dropped, since
	// homes ask whose claim it names and not who speaks. It is called for each message. nil: all are, for tests alone.
	Owns func(job.NodeID, job.Token) bool
	// Start is the start of a machine's daemon that may link; nil: any may.
	Start func(job.NodeID) string
	// SeveralUsers: subjobs are of several users, so no machine may link that would run them all as one.
	SeveralUsers bool
	// Now is the clock that machines go by, which never goes back; nil: the wall clock.
	Now func() time.Time
	// Build of this side, for people.
	Build  string
	Timing Timing
	Log    *slog.Logger
}

// Head is the side that listens: its own actors are attached here, those of the machines at their Member. Safe for concurrent use.
type Head struct {
	options HeadOptions
	own     fabric.Receivers
	ctx     context.Context
	stop    context.CancelCauseFunc
	open    sync.WaitGroup // streams

	mu      sync.Mutex
	links   map[job.NodeID]*linked // up
	waiting map[job.NodeID]*linked // calls that have not said their hello: a machine has one at most
	past    map[job.NodeID]Machine // of those that are down, as they were last
	dropped uint64                 // for whom there is no link and no receiver, and of links that are down
	closed  bool
}

// linked is a call that is a link, or is to be one with its hello, and what ends it.
type linked struct {
	*session
	ctx context.Context //nolint:containedctx // it says whether the call was ended
	end context.CancelCauseFunc
	// hearing is held while a message of it is delivered.
	hearing sync.Mutex
}

// hear delivers a message, unless the call was ended.
func (l *linked) hear(m protocol.Message, take func(protocol.Message) bool) bool {
	l.hearing.Lock()
	defer l.hearing.Unlock()
	return l.ctx.Err() != nil || take(m)
}

// silence ends the call. When it returns no message of it is delivered any more.
func (l *linked) silence(why error) {
	l.end(why)
	l.hearing.Lock()
	l.hearing.Unlock() //nolint:staticcheck // whoever held it is waited for
}

// Machine is what a head knows of one.
type Machine struct {
	Name job.NodeID
	Link
	// Up: the link is there. Else Why says what ended it, and Link is as it was then.
	Up  bool
	Why error
}

var _ fabric.Fabric = (*Head)(nil)

var (
	errReplaced = errkind.Errorf(errkind.Conflict, "the same machine has called again")
	errHungUp   = errkind.Errorf(errkind.Unavailable, "its connection has ended")
	errStopping = errkind.Errorf(errkind.Unavailable, "the head is stopping")
)

// NewHead returns a head without machines. Serve its Handler; Close it before the server.
func NewHead(o HeadOptions) *Head {
	o.Timing = o.Timing.filled()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Head{options: o, links: map[job.NodeID]*linked{}, waiting: map[job.NodeID]*linked{}, past: map[job.NodeID]Machine{}}
	h.ctx, h.stop = context.WithCancelCause(context.Background())
	return h
}

// Attach implements fabric.Fabric. A node of the name of a machine that is linked is an error of kind Exists too.
func (h *Head) Attach(addr protocol.Address, deliver fabric.Deliver) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if name := job.NodeID(addr.ID); addr.Role == protocol.Node && (h.links[name] != nil || h.waiting[name] != nil) {
		return errkind.Errorf(errkind.Exists, "attach node %q: a machine of that name is linked; give the node another name", addr.ID)
	}
	return h.own.Attach(addr, deliver)
}

// Send implements fabric.Fabric.
func (h *Head) Send(m protocol.Message) {
	if m.To.Role == protocol.Node {
		h.mu.Lock()
		l := h.links[job.NodeID(m.To.ID)]
		h.mu.Unlock()
		if l != nil {
			l.queue.put(m)
			return
		}
	}
	h.hand(m)
}

// hand delivers a message to an actor of this side, or counts it as dropped.
func (h *Head) hand(m protocol.Message) {
	if h.own.Hand(m) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped++
}

// take delivers a message of a machine, if it may say that.
func (h *Head) take(name job.NodeID, m protocol.Message) bool {
	if !allowed(name, &m) || h.options.Owns != nil && !about(&m, func(t job.Token) bool { return t.Zero() || h.options.Owns(name, t) }) {
		return false
	}
	h.hand(m)
	return true
}

// Dropped implements fabric.Fabric.
func (h *Head) Dropped() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.dropped
	for _, l := range h.links {
		n += l.queue.lost()
	}
	return n
}

// Together refuses a machine that has no version of links in common with this head; nil: it is of a build that does not say.
func (h *Head) Together(machine *pb.Speaks) error {
	if machine == nil {
		return nil
	}
	return Together(h.Speaks(), machine)
}

// Speaks is what this head speaks.
func (h *Head) Speaks() *pb.Speaks { return Speaks(h.options.Build) }

// Machines lists those that were here since the head came up, by name.
func (h *Head) Machines() (list []Machine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, l := range h.links {
		list = append(list, Machine{Name: name, Link: l.link(), Up: true})
	}
	for _, m := range h.past {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Machine is one of them; false: it was not here since the head came up.
func (h *Head) Machine(name job.NodeID) (Machine, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.links[name]; l != nil {
		return Machine{Name: name, Link: l.link(), Up: true}, true
	}
	m, ok := h.past[name]
	return m, ok
}

// Expel ends a machine's link with a reason, and its call that is no link yet. When it returns no word of it comes through any more, so
// what is said of the machine next is the last. It may call again, unless Caller refuses it by then: so whoever removes a machine has
// Caller refuse it first, and then expels it. An actor that is told something must not call it.
func (h *Head) Expel(name job.NodeID, why error) {
	h.mu.Lock()
	calls := []*linked{h.links[name], h.waiting[name]}
	if errors.Is(why, authority.ErrRemoved) {
		delete(h.past, name)
	}
	h.mu.Unlock()
	for _, l := range calls { // without the lock, which who is told something may want
		if l != nil {
			l.silence(why)
		}
	}
}

// Close implements fabric.Fabric.
func (h *Head) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stop(errStopping)
	h.open.Wait()
	h.own.Close()
	return nil
}

// Calls are those of the service that are no links.
type Calls interface {
	Join(ctx context.Context, r *connect.Request[pb.JoinRequest]) (*connect.Response[pb.JoinResponse], error)
	Renew(ctx context.Context, r *connect.Request[pb.RenewRequest]) (*connect.Response[pb.JoinResponse], error)
	Settings(ctx context.Context, r *connect.Request[pb.SettingsRequest]) (*connect.Response[pb.SettingsResponse], error)
	Leave(ctx context.Context, r *connect.Request[pb.LeaveRequest]) (*connect.Response[pb.LeaveResponse], error)
}

// service is the whole of it: Link is the head's.
type service struct {
	*Head
	Calls
}

var _ sluicev1alpha1connect.ClusterServiceHandler = service{}

// Handler serves the streams of machines, and the other calls with the given options, at the path returned first. Without calls it serves
// the streams alone. It needs HTTP/2, and a server whose ConnContext is WithConn.
func (h *Head) Handler(calls Calls, options ...connect.HandlerOption) (path string, handler http.Handler) {
	frames := func(s connect.Spec) []connect.HandlerOption {
		if s.Procedure != sluicev1alpha1connect.ClusterServiceLinkProcedure {
			return nil
		}
		return []connect.HandlerOption{connect.WithReadMaxBytes(MaxFrame)}
	}
	path, inner := sluicev1alpha1connect.NewClusterServiceHandler(service{h, calls}, append(slices.Clone(options),
		connect.WithConditionalHandlerOptions(frames),
		connect.WithCompression("gzip", nil, nil))...) // a machine could have 8 KiB become 8 MiB, and every answer would be compressed
	if calls == nil {
		path = sluicev1alpha1connect.ClusterServiceLinkProcedure
	}
	return path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			r = r.WithContext(context.WithValue(r.Context(), waysKey{}, ways{conn: conn, control: http.NewResponseController(w)}))
		}
		inner.ServeHTTP(w, r)
	})
}

// WithConn remembers a connection for the calls that come by it, for Head.Handler.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

type (
	connKey struct{} // of the connection that a call came by
	waysKey struct{} // of the ways to end a call
)

// ways to end a call of a machine.
type ways struct {
	conn    net.Conn
	control *http.ResponseController
}

// served is a stream as the head has it.
type served struct {
	*connect.BidiStream[pb.Frame, pb.Frame]
	ways
}

// Interrupt implements pipe. The answer can still be sent.
func (s served) Interrupt() { _ = s.control.SetReadDeadline(time.Unix(1, 0)) } // an error: the stream is over

// Break implements pipe. A link is alone on its connection.
func (s served) Break() { _ = s.conn.Close() } // an error: it is closed

// Link is the call of one machine. It is part of the API's service.
func (h *Head) Link(ctx context.Context, stream *connect.BidiStream[pb.Frame, pb.Frame]) error {
	name, err := h.options.Caller(ctx)
	if err != nil {
		return answer(err)
	}
	by, ok := ctx.Value(waysKey{}).(ways)
	if !ok {
		return answer(errors.New("stream: the server does not say by which connection a call came (WithConn)"))
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	l := &linked{ctx: ctx, end: end}
	s := newSession(h.options.Timing, h.options.Build, h.options.Now, func(m protocol.Message) bool {
		return l.hear(m, func(m protocol.Message) bool { return h.take(name, m) })
	})
	s.head, l.session = true, s
	if err = h.enter(name, l); err != nil {
		return answer(err)
	}
	defer h.open.Done()
	defer context.AfterFunc(h.ctx, func() { end(errStopping) })()
	// Asked once more: Expel knew nothing of this call if the machine was removed just after it was asked first.
	if _, err = h.options.Caller(ctx); err == nil {
		err = s.run(ctx, served{stream, by}, func() error {
			if anew := h.begun(name, s.other.Load()); anew != nil {
				return anew
			}
			return h.up(name, l)
		})
		if errors.Is(err, context.Canceled) { // by the server, whose words say nothing
			err = errHungUp
		}
		h.refused(name, l, err)
	}
	h.down(name, l, err)
	return answer(err)
}

// ErrOneUser refuses a machine in single-user mode where subjobs are of several users.
var ErrOneUser = errkind.Errorf(errkind.Denied, "the head serves several users, and this machine is in single-user mode: it would run the "+
	"subjobs of all as its daemon's own user: start it as root with a file of --config that has a user for each queue that it is to serve")

// begun refuses the link of a daemon whose start was not answered: it may have data of an older copy (authority.Started). And that of one
// that started before the head served several users.
func (h *Head) begun(name job.NodeID, hello *pb.Hello) error {
	if h.options.SeveralUsers && !hello.GetMapsUsers() {
		return ErrOneUser
	}
	if h.options.Start == nil || hello.GetStart() == h.options.Start(name) {
		return nil
	}
	return errkind.Errorf(errkind.Conflict, "machine %s has started anew and has not asked for its settings yet, or starts a second time "+
		"elsewhere", name)
}

// enter notes a call, unless the head is closed. It waits for its hello in the place of an earlier one, which ends.
func (h *Head) enter(name job.NodeID, l *linked) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errStopping
	}
	if h.own.Attached(protocol.Address{Role: protocol.Node, ID: string(name)}) {
		return errkind.Errorf(errkind.Denied, "machine %s has the name of a node of the head: remove it there, and let it join by "+
			"another name", name)
	}
	if was := h.waiting[name]; was != nil {
		was.end(errReplaced)
	}
	h.waiting[name] = l
	h.open.Add(1)
	return nil
}

// up makes a call the link of its machine. An earlier one ends: a machine that calls again has lost it, whether this side knows or not.
func (h *Head) up(name job.NodeID, l *linked) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.ctx.Err() != nil { // its machine was expelled, or has called again
		return context.Cause(l.ctx)
	}
	delete(h.waiting, name)
	if was := h.links[name]; was != nil {
		was.end(errReplaced)
		h.dropped += was.queue.lost() + uint64(len(was.queue.take(nil)))
	}
	h.links[name] = l
	delete(h.past, name)
	h.options.Log.Info("a machine is linked", "machine", string(name), "build", l.other.Load().GetBuild())
	return nil
}

// down notes that a call is over. Of a link that another has taken the place of, nothing is noted.
func (h *Head) down(name job.NodeID, l *linked, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting[name] == l {
		delete(h.waiting, name)
	}
	if h.links[name] != l {
		return
	}
	delete(h.links, name)
	h.dropped += l.queue.lost() + uint64(len(l.queue.take(nil)))
	if !errors.Is(why, authority.ErrRemoved) { // else nobody asks for it any more
		h.past[name] = Machine{Name: name, Link: l.link(), Why: why}
	}
	h.options.Log.Warn("a machine's link is gone", "machine", string(name), "why", why)
}

// refused notes why a machine that has called has no link, so that people see it here too. Of one that was removed nobody asks any more.
func (h *Head) refused(name job.NodeID, l *linked, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, final := codes[errkind.Of(why)]
	if h.links[name] != nil || !final || l.ctx.Err() != nil || errors.Is(why, authority.ErrRemoved) {
		return
	}
	m, before := h.past[name]
	if !before {
		m = Machine{Name: name, Link: l.link()}
	}
	if m.Why == nil || m.Why.Error() != why.Error() { // it calls again and again
		h.options.Log.Warn("a machine is refused", "machine", string(name), "why", why)
	}
	m.Why = why
	h.past[name] = m
}

// codes are those that a machine must be able to tell apart: all others mean that calling again may help.
var codes = map[errkind.Kind]connect.Code{
	errkind.Denied: connect.CodePermissionDenied, errkind.Unsupported: connect.CodeFailedPrecondition,
	errkind.Invalid: connect.CodeInvalidArgument, errkind.Conflict: connect.CodeAborted,
}

// answer is an error as the caller gets it.
func answer(err error) error {
	code, ok := codes[errkind.Of(err)]
	if !ok {
		code = connect.CodeUnavailable
	}
	return MarkRemoved(connect.NewError(code, err))
}
