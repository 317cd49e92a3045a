package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

// HeadName is the name in a head's certificate, whatever its address is: that may change.
const HeadName = "head.sluice.internal"

const secretBytes = 32

// kind begins every token's text, prefix that of this version: people and scanners of secrets know it by that.
const (
	kind   = "sluice-join-"
	prefix = kind + "1-"
)

// IsInvitation reports whether a secret is meant as a token to join by, of whatever version, and not as a daemon's token.
func IsInvitation(secret string) bool { return strings.HasPrefix(secret, kind) }

// Invitation is a token as the machine that joins by it reads it.
type Invitation struct {
	// Root is the SHA-256 of the root's certificate: who else answers at the head's address is not the head.
	Root   [sha256.Size]byte
	secret []byte
}

func (i Invitation) text() string {
	return prefix + base64.RawURLEncoding.EncodeToString(append(i.Root[:], i.secret...))
}

// ReadInvitation reads a token's text. Errors: Invalid.
func ReadInvitation(text string) (Invitation, error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	data, err := base64.RawURLEncoding.DecodeString(body)
	if !ok || err != nil || len(data) != sha256.Size+secretBytes {
		return Invitation{}, errkind.Errorf(errkind.Invalid, "this is no token: want what sluice token create has printed, which begins "+
			"with %s", prefix)
	}
	return Invitation{Root: [sha256.Size]byte(data), secret: data[sha256.Size:]}, nil
}

// Secret is what the head is shown (Authority.Join), once it has proved to be the head.
func (i Invitation) Secret() []byte { return i.secret }

// TLS is for the call by which a machine joins: the head must show a certificate of the root that the token names. now is the machine's
// clock.
func (i Invitation) TLS(now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: HeadName,
		InsecureSkipVerify: true, //nolint:gosec // the root is not known yet, only its hash: VerifyConnection holds the chain to it
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errkind.Errorf(errkind.Denied, "the head has shown no certificate")
			}
			root := s.PeerCertificates[len(s.PeerCertificates)-1]
			if sha256.Sum256(root.Raw) != i.Root {
				return errkind.Errorf(errkind.Denied, "what answers at the head's address is not the head that made the token: compare "+
					"the address, and make a new token there")
			}
			roots := x509.NewCertPool()
			roots.AddCert(root)
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: HeadName,
				CurrentTime: now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
			return err
		},
	}
}

// NewKey makes a machine's key, and the request for its certificate that goes to the head.
func NewKey(name job.NodeID) (key *ecdsa.PrivateKey, request []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	request, err = Request(name, key)
	return key, request, err
}

// Request asks for a certificate for a key.
func Request(name job.NodeID, key *ecdsa.PrivateKey) ([]byte, error) {
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(name)}}, key)
}

// Renewal is when a machine asks for its next certificate: when a third of its time is left.
func Renewal(cert *x509.Certificate) time.Time {
	return cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / 3)
}
