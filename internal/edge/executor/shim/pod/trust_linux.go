package pod

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
)

// clientOf makes the HTTP client for the store. This process runs in the job's image, which may lack certificates, or the private
// authority that signed the store's. So the bundle that the installer copied from our image is trusted too. Without a bundle it is
// net/http's default client.
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
