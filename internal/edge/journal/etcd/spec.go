//go:build etcd

package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// Name is the kind's name in specs.
const Name = "etcd"

// PasswordVariable is the environment's variable with the password of a spec's user: no file that others may read has it.
const PasswordVariable = "SLUICE_ETCD_PASSWORD"

// Parse reads a spec: etcd://HOST:PORT[,HOST:PORT...]/PREFIX[?ca=FILE&cert=FILE&key=FILE&user=NAME&tls=off]. Connections are by TLS, held
// to the system's authorities or to those of the file ca, with the client's certificate in cert and key; tls=off is for endpoints that
// nobody else can listen in on, and need not be said of this machine's own addresses. Its error has all that is wrong.
func Parse(spec string) (Options, error) {
	var o Options
	var wrong []error
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	rest, found := strings.CutPrefix(spec, Name+"://")
	rest, query, _ := strings.Cut(rest, "?")
	hosts, prefix, _ := strings.Cut(rest, "/")
	if !found {
		bad("it does not begin with etcd://")
	}
	if o.Prefix = "/" + strings.Trim(prefix, "/"); o.Prefix == "/" {
		bad("it has no prefix, which keeps its keys apart from others', such as /sluice/lab")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		bad("what follows ? can't be read: %w", err)
	}
	for name := range values {
		if !slices.Contains([]string{"ca", "cert", "key", "user", "tls"}, name) {
			bad("%q is not known; there are ca, cert, key, user and tls=off", name)
		}
	}
	plain := values.Get("tls") == "off"
	if v := values.Get("tls"); v != "" && !plain {
		bad("tls is %q; only off can be said", v)
	}
	local := true
	for _, h := range strings.Split(hosts, ",") {
		name, port, not := net.SplitHostPort(h)
		if not != nil || name == "" || port == "" {
			bad("the endpoint %q is not HOST:PORT", h)
			continue
		}
		ip := net.ParseIP(name)
		local = local && (name == "localhost" || ip != nil && ip.IsLoopback())
		o.Endpoints = append(o.Endpoints, h)
	}
	files := values.Get("ca") != "" || values.Get("cert") != "" || values.Get("key") != ""
	scheme := "https://"
	switch {
	case plain && files:
		bad("ca, cert and key are for TLS, which tls=off is without")
	case plain || local && !files:
		scheme = "http://"
	default:
		if o.TLS, err = tlsOf(values.Get("ca"), values.Get("cert"), values.Get("key")); err != nil {
			bad("%w", err)
		}
	}
	for i := range o.Endpoints {
		o.Endpoints[i] = scheme + o.Endpoints[i]
	}
	if o.User = values.Get("user"); o.User != "" {
		if o.Password = os.Getenv(PasswordVariable); o.Password == "" {
			bad("the password of user %s is missing: put it into the environment's variable %s", o.User, PasswordVariable)
		}
	}
	if len(wrong) > 0 {
		return Options{}, errkind.Errorf(errkind.Invalid, "journal %q, want etcd://HOST:PORT,.../PREFIX such as "+
			"etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/sluice/lab?ca=ca.pem&cert=head.pem&key=head.key:\n%w", spec, errors.Join(wrong...))
	}
	return o, nil
}

// tlsOf is the TLS of files in PEM, each of which may be left out.
func tlsOf(ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	var wrong []error
	if ca != "" {
		c.RootCAs = x509.NewCertPool()
		pem, err := os.ReadFile(ca)
		if err == nil && !c.RootCAs.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s has no certificate in PEM", ca)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("ca: %w", err))
		}
	}
	if (cert == "") != (key == "") {
		wrong = append(wrong, errors.New("cert and key belong together: give both"))
	} else if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("cert and key: %w", err))
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, errors.Join(wrong...)
}
