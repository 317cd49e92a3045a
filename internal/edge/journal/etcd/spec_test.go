//go:build etcd

package etcd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

func TestSpecs(t *testing.T) {
	t.Setenv(PasswordVariable, "secret")
	for spec, want := range map[string]struct {
		endpoints    []string
		prefix, user string
		tls          bool
	}{
		"etcd://127.0.0.1:2379/sluice":               {[]string{"http://127.0.0.1:2379"}, "/sluice", "", false},
		"etcd://[::1]:1,localhost:2/a/b/":            {[]string{"http://[::1]:1", "http://localhost:2"}, "/a/b", "", false},
		"etcd://10.0.0.1:2379,10.0.0.2:2379/x":       {[]string{"https://10.0.0.1:2379", "https://10.0.0.2:2379"}, "/x", "", true},
		"etcd://127.0.0.1:1,10.0.0.2:2379/x":         {[]string{"https://127.0.0.1:1", "https://10.0.0.2:2379"}, "/x", "", true},
		"etcd://10.0.0.1:2379/x?tls=off&user=sluice": {[]string{"http://10.0.0.1:2379"}, "/x", "sluice", false},
	} {
		o, err := Parse(spec)
		if err != nil || !slices.Equal(o.Endpoints, want.endpoints) || o.Prefix != want.prefix || o.User != want.user ||
			(o.TLS != nil) != want.tls || (o.Password == "secret") != (want.user != "") {
			t.Errorf("%s: %+v, %v", spec, o, err)
		}
	}
	no := filepath.Join(t.TempDir(), "no.pem")
	if err := os.WriteFile(no, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(PasswordVariable, "")
	for spec, want := range map[string][]string{
		"":                       {"etcd://", "no prefix", "HOST:PORT"},
		"etcd:///":               {"no prefix", `"" is not HOST:PORT`},
		"etcd://a/x?b=1&tls=yes": {`"a" is not HOST:PORT`, `"b" is not known`, `tls is "yes"`},
		"etcd://10.0.0.1:1/x?ca=" + no + "&cert=" + no: {"has no certificate", "give both"},
		"etcd://10.0.0.1:1/x?tls=off&ca=" + no:         {"tls=off is without"},
		"etcd://10.0.0.1:1/x?user=u":                   {PasswordVariable},
	} {
		_, err := Parse(spec)
		if errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want also %q", spec, err, w)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("etcd://127.0.0.1:2379/sluice?tls=off&user=a")
	f.Add("etcd://[::1]:1,h:2/a/b")
	f.Fuzz(func(t *testing.T, spec string) {
		if strings.Contains(spec, "ca=") || strings.Contains(spec, "cert=") {
			t.Skip("names files")
		}
		o, err := Parse(spec)
		if (err == nil) != (len(o.Endpoints) > 0 && len(o.Prefix) > 1) {
			t.Fatalf("%q: %+v, %v", spec, o, err)
		}
	})
}
