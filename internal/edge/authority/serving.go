package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"sync"
	"time"
)

// Server is for the head's listener: it shows a certificate of this root, which is made anew when a third of its time is left, and takes
// clients without a certificate, who may only join, and with one of this root (Caller says whose).
func (a *Authority) Server(now func() time.Time) *tls.Config {
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	s := &serving{authority: a, now: now}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, GetCertificate: s.certificate, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients,
		NextProtos: []string{"h2"}, Time: now,
	}
}

// serving keeps the certificate that a head shows. It is in memory alone: a head that starts makes another.
type serving struct {
	authority *Authority
	now       func() time.Time

	mu   sync.Mutex
	cert *tls.Certificate // nil: none was made yet
}

// certificate is for tls.Config.GetCertificate.
func (s *serving) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	// One that was made while the clock was ahead is good in the future alone.
	if s.cert != nil && now.Before(Renewal(s.cert.Leaf)) && !now.Before(s.cert.Leaf.NotBefore) {
		return s.cert, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := s.authority
	form := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: HeadName}, DNSNames: []string{HeadName}, NotBefore: now.Add(-behind),
		NotAfter: now.Add(CertificateFor), KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	s.cert = &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}
	return s.cert, nil
}
