package membership

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/fabric/stream"
	"sluice.dev/sluice/internal/edge/versioned"
)

const (
	// askFor bounds one call to the head.
	askFor = 30 * time.Second
	// dialFor bounds the connection for it.
	dialFor = 10 * time.Second
	// maxAnswer bounds what the head answers, in bytes.
	maxAnswer = 1 << 20
)

// Options of a machine.
type Options struct {
	// Dir keeps its membership. The caller holds the lock of the data directory that it is in.
	Dir string
	// MapsUsers: subjobs run as the user that this machine has for their queue, not as its daemon's own.
	MapsUsers bool
	// Now is this machine's clock; nil: the system's.
	Now func() time.Time
	// Stay is how long this machine belongs to its cluster from now on; nil: as before, and until it is removed if it joins.
	Stay *Stay
	// Build of this machine, for people.
	Build string
	// Measured gets what the head's clock says now, with each answer of settings, and how long the way there and back took; where the head
	// is away at the first call what it would say by how the two clocks differed last. nil: nobody.
	Measured func(head time.Time, round time.Duration)
	Log      *slog.Logger
}

func (o Options) filled() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Measured == nil {
		o.Measured = func(time.Time, time.Duration) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Invited is what a person gives a machine that is to join.
type Invited struct {
	// Head is its address, host:port.
	Head string
	// Token as the head has printed it.
	Token string
	// Name by which the machine is to be known.
	Name job.NodeID
}

// Membership is a machine's in its cluster. Safe for concurrent use.
type Membership struct {
	options Options
	starts  starts

	mu    sync.Mutex
	kept  kept // Joined is not nil, and not written to
	cert  *x509.Certificate
	why   error // the last renewal failed for this
	dirty bool  // the file has not the last certificate
	local net.IP
}

// Join makes the machine a member of a cluster, and keeps that. It may be called again with the same token and name whatever became of an
// earlier call, until the token lapses; once it has succeeded, that only takes over another address of the head. By another token a machine
// joins again that was removed at the head; until then it keeps what it has. Errors: Invalid, Conflict (the directory is of another machine
// or cluster), the head's (Denied, Exists, Exhausted), Unavailable (ask again), and those of Open for what is in the directory.
func Join(ctx context.Context, o Options, by Invited) (*Membership, error) {
	o = o.filled()
	invitation, err := authority.ReadInvitation(by.Token)
	if err != nil {
		return nil, err
	}
	if err = authority.CheckName(by.Name); err != nil {
		return nil, err
	}
	if err = checkHead(by.Head); err != nil {
		return nil, err
	}
	k, err := readKept(o.Dir)
	if err != nil {
		return nil, err
	}
	id := identity{Name: by.Name, Head: by.Head, Cluster: fmt.Sprintf("%x", invitation.Root), Token: hashOf(invitation.Secret())}
	if was := k.Joined; was != nil {
		if err = was.same(id, o.Dir); err != nil {
			return nil, err
		}
		if was.Token == id.Token {
			return moved(o, k, by.Head)
		}
	}
	key, err := k.ask(&id)
	if err != nil {
		return nil, err
	}
	k.Asked = &id
	if err = k.write(o.Dir); err != nil { // first: who asks with a key that is lost then has used the token up for nothing
		return nil, err
	}
	joined, err := id.join(ctx, key, invitation, o)
	if err != nil {
		return nil, err
	}
	k.Joined, k.Asked = joined, nil
	if err = k.write(o.Dir); err != nil {
		return nil, fmt.Errorf("the machine has joined, but can't keep that; make room, and join by the same token again: %w", err)
	}
	o.Log.Info("joined the cluster", "machine", string(id.Name), "head", id.Head, "number", joined.Number)
	return newMembership(o, k)
}

// same refuses another cluster or another name than the machine has.
func (id *identity) same(as identity, dir string) error {
	const what = "; use another directory, or, if nothing of that machine runs or is needed any more, remove this one; nothing was changed"
	if id.Cluster != as.Cluster {
		return errkind.Errorf(errkind.Conflict, "%s is of machine %s in another cluster, with its head at %s"+what, dir, id.Name, id.Head)
	}
	if id.Name != as.Name {
		return errkind.Errorf(errkind.Conflict, "%s is of machine %s, not of %s: join by that name"+what, dir, id.Name, as.Name)
	}
	return nil
}

// moved is the membership of a machine that has joined by this token, whose head may have another address now.
func moved(o Options, k kept, head string) (*Membership, error) {
	if k.Joined.Head != head {
		id := *k.Joined
		id.Head = head
		k.Joined = &id
		if err := k.write(o.Dir); err != nil {
			return nil, err
		}
	}
	return newMembership(o, k)
}

// ask gives an identity the key by which it was asked for before, or a new one. A key is for one token: a machine that was removed must not
// come back with certificates that were made for it before.
func (k kept) ask(id *identity) (*ecdsa.PrivateKey, error) {
	if was := k.Asked; was != nil && was.Token == id.Token && was.Name == id.Name {
		id.Key = was.Key
		return id.key()
	}
	key, _, err := authority.NewKey(id.Name)
	if err == nil {
		id.Key, err = x509.MarshalPKCS8PrivateKey(key)
	}
	return key, err
}

// join asks the head, and returns what this machine is from then on.
func (id identity) join(ctx context.Context, key *ecdsa.PrivateKey, i authority.Invitation, o Options) (*identity, error) {
	request, err := authority.Request(id.Name, key)
	if err != nil {
		return nil, err
	}
	var answer *connect.Response[pb.JoinResponse]
	join := func(ctx context.Context, c sluicev1alpha1connect.ClusterServiceClient) (err error) {
		answer, err = c.Join(ctx, connect.NewRequest(&pb.JoinRequest{Secret: i.Secret(), Name: string(id.Name), Request: request,
			Stay: o.Stay.toWire(), Speaks: stream.Speaks(o.Build)}))
		return err
	}
	err = ask(ctx, id.Head, i.TLS(o.Now), func(net.Conn) {}, join)
	if err != nil {
		return nil, fmt.Errorf("join as machine %s: %w", id.Name, err)
	}
	next, _, err := id.with(answer.Msg)
	return next, err
}

// with is the identity with what the head has answered.
func (id identity) with(m *pb.JoinResponse) (*identity, *x509.Certificate, error) {
	id.Certificate, id.Root, id.Number = m.GetCertificate(), m.GetRoot(), int(m.GetNumber())
	cert, err := id.certificate()
	if err != nil {
		return nil, nil, errkind.Errorf(errkind.Corrupt, "the head at %s has answered with what this machine can't use; look at its log, "+
			"and whether both are of builds that go together: %w", id.Head, err)
	}
	return &id, cert, nil
}

// ask makes one call to a head, by a connection of its own, which dialed sees.
func ask(ctx context.Context, head string, config *tls.Config, dialed func(net.Conn),
	call func(context.Context, sluicev1alpha1connect.ClusterServiceClient) error) error {
	ctx, end := context.WithTimeout(ctx, askFor)
	defer end()
	dial := (&net.Dialer{Timeout: dialFor}).DialContext
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialFor,
		IdleConnTimeout: dialFor, // a call that was given up may be let go of later
		DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
			c, err := dial(ctx, network, at)
			if err == nil {
				dialed(c)
			}
			return c, err
		},
	}
	defer transport.CloseIdleConnections()
	client := sluicev1alpha1connect.NewClusterServiceClient(&http.Client{Transport: transport}, "https://"+head, connect.WithGRPC(),
		connect.WithReadMaxBytes(maxAnswer), connect.WithAcceptCompression("gzip", nil, nil))
	if err := call(ctx, client); err != nil {
		return understood(head, err)
	}
	return nil
}

// Open reads the membership of a machine that has joined. Errors: NotFound (it has not), Corrupt, Denied (others may read or write what is
// kept), Unsupported (a newer build has written it).
func Open(o Options) (*Membership, error) {
	o = o.filled()
	k, err := readKept(o.Dir)
	if err != nil {
		return nil, err
	}
	switch {
	case k.Joined != nil:
		return newMembership(o, k)
	case k.Asked != nil:
		return nil, errkind.Errorf(errkind.NotFound, "this machine has asked the head at %s to join as %s, and has kept no answer in %s: "+
			"run sluice join again with the same token, or with another one if that has lapsed", k.Asked.Head, k.Asked.Name, o.Dir)
	}
	return nil, errkind.Errorf(errkind.NotFound, "this machine belongs to no cluster, as %s has nothing of one: make a token at the head "+
		"with sluice token create, and run sluice join here", o.Dir)
}

func newMembership(o Options, k kept) (*Membership, error) {
	cert, err := k.Joined.certificate()
	if err != nil {
		return nil, err
	}
	return &Membership{options: o, kept: k, cert: cert}, nil
}

// present is what the machine is now.
func (m *Membership) present() (identity, *x509.Certificate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.kept.Joined, m.cert
}

// Move takes over another address of the head, host:port. Errors: Invalid.
func (m *Membership) Move(head string) error {
	if err := checkHead(head); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept.Joined.Head == head {
		return nil
	}
	id := *m.kept.Joined
	id.Head = head
	k := m.kept
	k.Joined = &id
	if err := k.write(m.options.Dir); err != nil {
		return err
	}
	m.kept = k
	return nil
}

// checkHead refuses what is no address.
func checkHead(head string) error {
	if host, port, err := net.SplitHostPort(head); err != nil || host == "" || port == "" {
		return errkind.Errorf(errkind.Invalid, "the head's address %q is none: want host:port such as head.example:7118", head)
	}
	return nil
}

// Name of this machine.
func (m *Membership) Name() job.NodeID {
	id, _ := m.present()
	return id.Name
}

// Number of this machine (node.Config.Number).
func (m *Membership) Number() int {
	id, _ := m.present()
	return id.Number
}

// Head is its address.
func (m *Membership) Head() string {
	id, _ := m.present()
	return id.Head
}

// State is until when the present certificate is good, and why it was not renewed when that was tried last; nil: it was, or was not tried.
func (m *Membership) State() (until time.Time, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cert.NotAfter, m.why
}

// errUnfit marks a certificate that the head would not take, so that it is not asked.
var errUnfit = errors.New("the machine's certificate is not good now")

// TLS is for calls to the head, with the present certificate (stream.MemberOptions.TLS). Errors: Denied, with what to do, for one that has
// lapsed, Unavailable for one that is not good yet, which the clock must be wrong for.
func (m *Membership) TLS() (*tls.Config, error) {
	id, cert := m.present()
	switch now := m.options.Now(); {
	case now.After(cert.NotAfter):
		return nil, errkind.Errorf(errkind.Denied, "%w: that of machine %s has lapsed at %v, and by this machine's clock it is %v: if "+
			"the clock is right run sluice nodes remove %s at the head, make a new token there, and join again here by it", errUnfit,
			id.Name, cert.NotAfter, now.UTC(), id.Name)
	case now.Before(cert.NotBefore):
		return nil, errkind.Errorf(errkind.Unavailable, "%w: that of machine %s is good from %v on, and by this machine's clock it is %v: "+
			"set the clock", errUnfit, id.Name, cert.NotBefore, now.UTC())
	}
	key, err := id.key()
	if err != nil {
		return nil, err
	}
	config, err := authority.Joined{Certificate: id.Certificate, Root: id.Root}.TLS(key)
	if err != nil {
		return nil, err
	}
	config.Time = m.options.Now
	return config, nil
}

// ask makes a call to the head as this machine.
func (m *Membership) ask(ctx context.Context, call func(context.Context, sluicev1alpha1connect.ClusterServiceClient) error) error {
	config, err := m.TLS()
	if err != nil {
		return err
	}
	return ask(ctx, m.Head(), config, func(c net.Conn) {
		if at, is := c.LocalAddr().(*net.TCPAddr); is {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.local = at.IP
		}
	}, call)
}

// Local is the address that this machine had at the last call to its head; nil: it has never called. Others may reach it there, unless it
// is a loopback's, or of a network of its own.
func (m *Membership) Local() net.IP {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.local
}

// renew gets the next certificate, and keeps it. One that can't be kept is used all the same, and the next call only tries to keep it.
func (m *Membership) renew(ctx context.Context) error {
	if unkept, err := m.keepLast(); unkept {
		return err
	}
	id, _ := m.present()
	key, err := id.key()
	if err != nil {
		return err
	}
	request, err := authority.Request(id.Name, key)
	if err != nil {
		return err
	}
	var answer *connect.Response[pb.JoinResponse]
	err = m.ask(ctx, func(ctx context.Context, c sluicev1alpha1connect.ClusterServiceClient) (err error) {
		answer, err = c.Renew(ctx, connect.NewRequest(&pb.RenewRequest{Request: request}))
		return err
	})
	if err != nil {
		return fmt.Errorf("renew the certificate of machine %s: %w", id.Name, err)
	}
	next, cert, err := id.with(answer.Msg)
	if err == nil && next.Number != id.Number {
		err = errkind.Errorf(errkind.Corrupt, "the head at %s gives this machine number %d, and it has %d: its files may be of an old "+
			"copy; look at its log", id.Head, next.Number, id.Number)
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.kept.Joined, m.cert, m.dirty = next, cert, true
	m.mu.Unlock()
	_, err = m.keepLast()
	return err
}

// keepLast writes the last certificate, and reports whether it was not written yet.
func (m *Membership) keepLast() (unkept bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirty {
		return false, nil
	}
	err = m.kept.write(m.options.Dir)
	m.dirty = err != nil
	return true, err
}

// lastSettings is the content of settingsFile.
type lastSettings struct {
	Version int `json:"version"`
	// Settings are a SettingsResponse as it came, so that a later build finds in it what this one does not know.
	Settings []byte `json:"settings"`
	// Ahead is by how much the head's clock was ahead of this machine's; nil: an earlier build has written it.
	Ahead *time.Duration `json:"ahead,omitempty"`
	// Local is the address that this machine had then.
	Local net.IP `json:"local,omitempty"`
}

// Settings asks the head for those of this machine's node, and keeps them. While it can't be reached the last ones are good. Errors: what
// the head has refused, Denied for a machine of one user where the head serves several, Unavailable if it can't be reached and there are no
// last ones.
func (m *Membership) Settings(ctx context.Context) (Settings, error) {
	is, ahead, err := m.asked(ctx)
	path := filepath.Join(m.options.Dir, settingsFile)
	if err != nil {
		return m.settingsOf(path, fmt.Errorf("ask for the settings of machine %s: %w", m.Name(), err))
	}
	data, err := proto.Marshal(is)
	if err == nil {
		err = writeFile(path, lastSettings{Version: fileVersion, Settings: data, Ahead: &ahead, Local: m.Local()})
	}
	if err != nil {
		return Settings{}, fmt.Errorf("keep the settings of this machine's node: %w", err)
	}
	return m.fit(is)
}

// fit are the settings, if a machine of this kind can have them. Errors: Denied.
func (m *Membership) fit(is *pb.SettingsResponse) (Settings, error) {
	s := fromWire(is)
	if s.SeveralUsers && !m.options.MapsUsers {
		return Settings{}, stream.ErrOneUser
	}
	return s, nil
}

// asked asks the head for the settings, by which it hears of this start. ahead is by how much the head's clock is ahead of this machine's.
func (m *Membership) asked(ctx context.Context) (is *pb.SettingsResponse, ahead time.Duration, err error) {
	start, before, err := m.starts.begin(m.options.Dir)
	if err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	stay := m.options.Stay
	m.mu.Unlock()
	begun := time.Now()
	var answer *connect.Response[pb.SettingsResponse]
	err = m.ask(ctx, func(ctx context.Context, c sluicev1alpha1connect.ClusterServiceClient) (err error) {
		answer, err = c.Settings(ctx, connect.NewRequest(&pb.SettingsRequest{Start: start, Before: before,
			MapsUsers: m.options.MapsUsers, Stay: stay.toWire(), Speaks: stream.Speaks(m.options.Build)}))
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	if head := answer.Msg.GetSpeaks(); head != nil {
		if err = stream.Together(head, stream.Speaks(m.options.Build)); err != nil {
			return nil, 0, err
		}
	}
	if stay != nil && stay.Ephemeral && answer.Msg.GetStay() == nil {
		return nil, 0, errkind.Errorf(errkind.Unsupported, "the head at %s is of a build that does not know machines with an end: upgrade "+
			"it first, or start this one without --ephemeral and --until", m.Head())
	}
	if said := answer.Msg.GetNow(); said != nil {
		round := time.Since(begun)
		head := said.AsTime().Add(round / 2)
		ahead = head.Sub(m.options.Now())
		m.options.Measured(head, round)
	}
	return answer.Msg, ahead, m.starts.answer(m.options.Dir)
}

// Start is the present start of this machine's daemon, once the head has answered it (stream.MemberOptions.Start): it asks until then.
// Errors: those of Settings, and Unavailable while the head is away.
func (m *Membership) Start(ctx context.Context) (string, error) {
	m.starts.mu.Lock()
	answered := m.starts.answered
	m.starts.mu.Unlock()
	if !answered {
		if _, _, err := m.asked(ctx); err != nil {
			return "", err
		}
	}
	start, _, err := m.starts.begin(m.options.Dir)
	return start, err
}

// settingsOf are the last ones, if the head was not reached.
func (m *Membership) settingsOf(path string, why error) (Settings, error) {
	if errkind.Of(why) != errkind.Unavailable && !errors.Is(why, errUnfit) {
		return Settings{}, why
	}
	var last lastSettings
	var is pb.SettingsResponse
	const otherwise = "remove it, and start this machine once while its head answers"
	found, err := readFile(path, otherwise, &last)
	if err == nil && found {
		if err = proto.Unmarshal(last.Settings, &is); err != nil {
			err = versioned.Damaged(path, mend(otherwise), err)
		}
	}
	switch {
	case err != nil:
		return Settings{}, errors.Join(why, err)
	case !found:
		return Settings{}, why
	}
	if last.Ahead != nil {
		m.options.Measured(m.options.Now().Add(*last.Ahead), 0)
	}
	m.options.Log.Warn("the head can't be asked for the settings of this machine's node, and the last ones are used", "why", why)
	m.mu.Lock()
	if m.local == nil {
		m.local = last.Local
	}
	stay := m.options.Stay
	m.mu.Unlock()
	s, err := m.fit(&is)
	if stay != nil { // the head hears of it later
		ahead := time.Duration(0)
		if last.Ahead != nil {
			ahead = *last.Ahead
		}
		s.Stay = stay.By(m.options.Now().Add(ahead))
	}
	return s, err
}
