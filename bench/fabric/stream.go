package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/fabric/stream"
)

var zone = protocol.Address{Role: protocol.Zone, ID: "z"}

func node(name string) protocol.Address { return protocol.Address{Role: protocol.Node, ID: name} }

// said is a payload as a message: a refusal's text has its bytes.
func said(from, to protocol.Address, payload []byte) protocol.Message {
	return protocol.Message{Kind: protocol.RedeemRefused, From: from, To: to, Body: &protocol.Refusal{Text: string(payload)}}
}

func payload(m protocol.Message) []byte { return []byte(m.Body.(*protocol.Refusal).Text) }

type streamHead struct {
	head   *stream.Head
	server *http.Server
	at     string
}

type callerKey struct{}

func newStreamHead(_ []string, addr string, got func([]byte)) (head, error) {
	h := stream.NewHead(stream.HeadOptions{Caller: func(ctx context.Context) (job.NodeID, error) {
		return job.NodeID(ctx.Value(callerKey{}).(string)), nil
	}})
	if err := h.Attach(zone, func(m protocol.Message) { got(payload(m)) }); err != nil {
		return nil, err
	}
	path, handler := h.Handler(nil)
	mux := http.NewServeMux()
	mux.Handle(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.TLS.PeerCertificates[0].Subject.CommonName
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, name)))
	}))
	l, err := listen(addr)
	if err != nil {
		return nil, err
	}
	config, err := certificate("head")
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: mux, TLSConfig: config, ReadHeaderTimeout: time.Minute, ConnContext: stream.WithConn}
	go func() { _ = s.ServeTLS(l, "", "") }()
	return &streamHead{h, s, l.Addr().String()}, nil
}

func listen(addr string) (net.Listener, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	return net.Listen("tcp", addr)
}

func (h *streamHead) addr() string                { return h.at }
func (h *streamHead) to(name string, data []byte) { h.head.Send(said(zone, node(name), data)) }
func (h *streamHead) close()                      { _, _ = h.head.Close(), h.server.Close() }
func (h *streamHead) linked() (n int) {
	for _, m := range h.head.Machines() {
		if m.Up {
			n++
		}
	}
	return n
}

type streamMember struct {
	*stream.Member
	name string
}

func newStreamMember(name, addr string, got func([]byte)) (member, error) {
	config, err := certificate(name)
	if err != nil {
		return nil, err
	}
	m := stream.Join(stream.MemberOptions{Machine: job.NodeID(name), Head: addr, TLS: func() (*tls.Config, error) { return config, nil }})
	return streamMember{m, name}, m.Attach(node(name), func(m protocol.Message) { got(payload(m)) })
}

func (m streamMember) up(data []byte) { m.Send(said(node(m.name), zone, data)) }
func (m streamMember) close()         { _ = m.Close() }
