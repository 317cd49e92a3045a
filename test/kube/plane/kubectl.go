//go:build kubernetes

package plane

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig is a file that kubectl, and everything that reads such files, becomes the plane's administrator with.
func (p *Plane) Kubeconfig() string { return filepath.Join(p.dir, "admin.kubeconfig") }

// writeKubeconfig writes NAME.kubeconfig for a user with groups.
func (p *Plane) writeKubeconfig(name, user string, groups ...string) error {
	cert, key, err := p.ca.issue(name, user, groups...)
	if err != nil {
		return err
	}
	c := api.NewConfig()
	c.Clusters["plane"] = &api.Cluster{Server: "https://" + p.at(string(APIServer)), CertificateAuthority: filepath.Join(p.dir, "ca.crt")}
	c.AuthInfos[user] = &api.AuthInfo{ClientCertificate: cert, ClientKey: key}
	c.Contexts["plane"] = &api.Context{Cluster: "plane", AuthInfo: user}
	c.CurrentContext = "plane"
	return clientcmd.WriteToFile(*c, filepath.Join(p.dir, name+".kubeconfig"))
}

// User writes a kubeconfig for a user with groups, and returns its path: a kubelet's, for one.
func (p *Plane) User(name, user string, groups ...string) (string, error) {
	return filepath.Join(p.dir, name+".kubeconfig"), p.writeKubeconfig(name, user, groups...)
}

// Address is where the API server listens, on loopback.
func (p *Plane) Address() string { return p.at(string(APIServer)) }

// Kubectl runs kubectl as the administrator, and returns what it printed. Its error has what it said.
func (p *Plane) Kubectl(args ...string) (string, error) { return p.KubectlWith("", args...) }

// KubectlWith is Kubectl with a text on its standard input, as in KubectlWith(yaml, "apply", "-f", "-").
func (p *Plane) KubectlWith(stdin string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(p.assets, string(kubectl)),
		append([]string{"--kubeconfig=" + p.Kubeconfig(), "--cache-dir=" + filepath.Join(p.dir, "kubectl.cache")}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

// unchecked asks the parts that sign their own certificate for their health.
//
//nolint:gochecknoglobals // it has nothing but its settings
var unchecked = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

func okInsecure(ctx context.Context, url string) error { return okWith(ctx, unchecked, url) }

// Program is the path of one of the programs that the plane was started of, such as kubectl.
func (p *Plane) Program(name string) string { return filepath.Join(p.assets, name) }

// Define has the cluster know the chart's custom resources. The test runs in a folder of the repository.
func (p *Plane) Define(t testing.TB) {
	t.Helper()
	root, err := filepath.Abs(".")
	for ; err == nil && root != "/"; root = filepath.Dir(root) {
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil {
			break
		}
	}
	crds := filepath.Join(root, "deploy/helm/sluice/crds")
	for _, args := range [][]string{{"apply", "--server-side"}, {"wait", "--for=condition=Established", "--timeout=120s"}} {
		if out, err := p.Kubectl(append(args, "-f", crds)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}
