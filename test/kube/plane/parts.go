//go:build kubernetes

package plane

import (
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

//go:embed stages.yaml
var stages []byte

// address is a loopback address that nobody listens on, and that no other plane on this machine is given while this process lives: a part
// that found its port taken would end, and another plane's answer for it. It is below the range that the kernel takes clients' ports
// from: else a client that dials a stopped API server may be given that very port, connect to itself, and keep the port.
func address() (string, error) {
	for range 200 {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		if !claim(port) {
			continue
		}
		a := net.JoinHostPort("127.0.0.1", port)
		if l, err := net.Listen("tcp", a); err == nil {
			return a, l.Close()
		}
	}
	return "", errors.New("no free port from 20000 to 32000 on 127.0.0.1 in 200 tries")
}

// claims are the names of the ports that this process has claimed; they keep their sockets from being collected.
//
//nolint:gochecknoglobals // as long as the process
var claims sync.Map

// claim says whether a port is this process's from now on. Who claims it is known by a socket's name without a file (unix(7), abstract),
// which the kernel forgets with the process.
func claim(port string) bool {
	l, err := net.Listen("unix", "@sluice-plane-port-"+port)
	if err != nil {
		return false
	}
	claims.Store(port, l)
	return true
}

// at is the address that a part listens on, the same for the plane's life. Etcd has a second, for peers that it does not have.
func (p *Plane) at(name string) string { return p.addresses[name] }

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// number is a port that address has made.
func number(port string) int {
	n, _ := strconv.Atoi(port)
	return n
}

// arguments is a part's command line. What it names in the plane's folder has been written by prepare.
func (p *Plane) arguments(part Part) []string {
	in := func(name string) string { return filepath.Join(p.dir, name) }
	secure := func(args ...string) []string { // what the parts that talk to the API server and serve health have in common
		kubeconfig := in(string(part) + ".kubeconfig")
		return append(args, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
			"--bind-address=127.0.0.1", "--secure-port="+port(p.at(string(part))), "--cert-dir="+in(string(part)))
	}
	switch part {
	case Etcd:
		client, peer := "http://"+p.at("etcd"), "http://"+p.at("peer")
		return []string{"--name=plane", "--data-dir=" + in("etcd.data"), "--listen-client-urls=" + client, "--advertise-client-urls=" +
			client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=plane=" + peer,
			"--quota-backend-bytes=4294967296",
			"--unsafe-no-fsync"} // a plane does not outlive the machine
	case APIServer:
		args := []string{"--etcd-servers=http://" + p.at("etcd"), "--bind-address=127.0.0.1", "--secure-port=" + port(p.at(string(part))),
			"--tls-cert-file=" + in("server.crt"), "--tls-private-key-file=" + in("server.key"), "--client-ca-file=" + in("ca.crt"),
			"--authorization-mode=Node,RBAC", "--service-account-issuer=https://plane", "--service-account-key-file=" + in("accounts.crt"),
			"--service-account-signing-key-file=" + in("accounts.key"), "--service-cluster-ip-range=10.96.0.0/16",
			"--endpoint-reconciler-type=none",
			"--allow-privileged=true", "--max-requests-inflight=3000", "--max-mutating-requests-inflight=1000"}
		if !p.has(Controllers) { // which make the accounts that Pods would have
			args = append(args, "--disable-admission-plugins=ServiceAccount")
		}
		if p.egress != "" {
			args = append(args, "--egress-selector-config-file="+in("egress.yaml"), "--kubelet-preferred-address-types=InternalIP")
		}
		for _, api := range p.apis {
			args = append(args, "--runtime-config="+api)
		}
		return append(args, p.gates()...)
	case Controllers:
		return append(secure("--kubeconfig="+in(string(part)+".kubeconfig"), "--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file="+in("accounts.key"), "--root-ca-file="+in("ca.crt"), "--kube-api-qps=1000",
			"--kube-api-burst=2000"), p.gates()...)
	case Scheduler:
		return append(secure("--config="+in("scheduler.yaml")), p.gates()...)
	case Kwok:
		return []string{"--kubeconfig=" + in(string(part)+".kubeconfig"), "--config=" + in("stages.yaml"),
			"--manage-nodes-with-label-selector=type=kwok",
			"--node-lease-duration-seconds=40", "--server-address=" + p.at(string(part))}
	case Kueue:
		return []string{"--kubeconfig=" + in(string(part)+".kubeconfig"), "--config=" + in("kueue.yaml")}
	case kubectl:
	}
	panic("no arguments for " + part)
}

// users are the names that parts have for the API server, which has roles for them.
var users = map[Part][]string{ //nolint:gochecknoglobals // read-only by use
	Scheduler:   {"system:kube-scheduler"},
	Controllers: {"system:kube-controller-manager"},
	Kwok:        {"kwok", "system:masters"},  // it is the kubelets, and the garbage collector of their Pods
	Kueue:       {"kueue", "system:masters"}, // the roles of its manifests are not what is tested
}

// prepare chooses addresses and writes what the parts read: certificates, kubeconfigs and configurations.
func (p *Plane) prepare() error {
	p.addresses = map[string]string{}
	for _, name := range []string{"etcd", "peer", string(APIServer), string(Controllers), string(Scheduler), string(Kwok), string(Kueue),
		kueueWebhooks} {
		a, err := address()
		if err != nil {
			return err
		}
		p.addresses[name] = a
	}
	ca, err := newAuthority(p.dir)
	if err != nil {
		return err
	}
	p.ca = ca
	for _, name := range []string{"server", "accounts"} {
		if _, _, err := ca.issue(name, name); err != nil {
			return err
		}
	}
	for part, user := range users {
		if err := p.writeKubeconfig(string(part), user[0], user[1:]...); err != nil {
			return err
		}
	}
	if err := p.writeKubeconfig("admin", "admin", "system:masters"); err != nil {
		return err
	}
	egress := fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections: [{name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}}]
`, p.egress)
	scheduler := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: %d, burst: %d}
`, filepath.Join(p.dir, string(Scheduler)+".kubeconfig"), schedulerQPS, 2*schedulerQPS)
	return errors.Join(
		p.configureKueue(),
		os.WriteFile(filepath.Join(p.dir, "egress.yaml"), []byte(egress), 0o600),
		os.WriteFile(filepath.Join(p.dir, "scheduler.yaml"), []byte(scheduler), 0o600),
		os.WriteFile(filepath.Join(p.dir, "stages.yaml"), stagesWithout(p.leaves), 0o600))
}

// stagesWithout are the stages of Pods that do not have a label; "": of all.
func stagesWithout(label string) []byte {
	if label == "" {
		return stages
	}
	const pods = "    kind: Pod\n  selector:\n    matchExpressions:\n"
	return []byte(strings.ReplaceAll(string(stages), pods, pods+fmt.Sprintf("    - key: '.metadata.labels[%q]'\n      operator: "+
		"'DoesNotExist'\n", label)))
}
