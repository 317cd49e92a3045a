package main

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// A machine listens to to.NAME and speaks to from.NAME; the head listens to from.*. The same beat as a stream's: a ping a second, gone
// after four seconds.
const (
	beat  = time.Second
	beats = 3
)

type natsHead struct {
	server *server.Server
	conn   *nats.Conn
	at     string
	own    uint32 // subscriptions of the head and the server itself
}

func newNATSHead(names []string, addr string, got func([]byte)) (head, error) {
	config, err := certificate("head")
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, TLSConfig: config, TLSTimeout: 10, PingInterval: beat, MaxPingsOut: beats,
		Users: []*server.User{{Username: "head", Password: "head"}}, TLSVerify: true,
	}
	if addr != "" {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		if o.Port, err = strconv.Atoi(port); err != nil {
			return nil, err
		}
	}
	for _, n := range names {
		o.Users = append(o.Users, &server.User{Username: n, Password: n, Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"from." + n}},
			Subscribe: &server.SubjectPermission{Allow: []string{"to." + n}},
		}})
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, fmt.Errorf("the server does not listen")
	}
	c, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo("head", "head"))
	if err != nil {
		return nil, err
	}
	sub, err := c.Subscribe("from.*", func(m *nats.Msg) { got(m.Data) })
	if err != nil {
		return nil, err
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	return &natsHead{s, c, s.Addr().String(), s.NumSubscriptions()}, nil
}

func (h *natsHead) addr() string                { return h.at }
func (h *natsHead) to(name string, data []byte) { _ = h.conn.Publish("to."+name, data) }

// linked counts those that listen: a connection alone has not shown who it is.
func (h *natsHead) linked() int { return int(h.server.NumSubscriptions()) - int(h.own) }

func (h *natsHead) close() { h.conn.Close(); h.server.Shutdown(); h.server.WaitForShutdown() }

type natsMember struct {
	*nats.Conn
	subject string
}

func newNATSMember(name, addr string, got func([]byte)) (member, error) {
	config, err := certificate(name)
	if err != nil {
		return nil, err
	}
	c, err := nats.Connect("tls://"+addr, nats.Secure(config), nats.UserInfo(name, name), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond), nats.CustomReconnectDelay(backOff), nats.PingInterval(beat),
		nats.MaxPingsOutstanding(beats))
	if err != nil {
		return nil, err
	}
	_, err = c.Subscribe("to."+name, func(m *nats.Msg) { got(m.Data) })
	return natsMember{c, "from." + name}, err
}

// backOff is that of a stream.
func backOff(attempts int) time.Duration {
	return min(100*time.Millisecond<<min(attempts, 10), 2*time.Second)
}

func (m natsMember) up(data []byte) { _ = m.Publish(m.subject, data) }
func (m natsMember) close()         { m.Close() }
