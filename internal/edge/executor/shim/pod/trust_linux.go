package pod

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
)

// clientOf speaks to the store. This process runs in the job's image, which may hold no certificates, or not those of a private authority that signs the store's: so what lies in the
// bundle, which the installer has copied from our own image, is trusted as well. Without a bundle it is net/http's own client.
func clientOf(bundle string) *http.Client {
	data, err := os.ReadFile(bundle)
	if err != nil {
		return http.DefaultClient
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(data)
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // net/http documents it
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: t}
}
