package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// stranger runs the client as nobody, with nothing of the daemon's user in its environment.
func (d *daemon) stranger(in string, env []string, args ...string) (text string, code int) {
	d.t.Helper()
	var out bytes.Buffer
	c := exec.Command(filepath.Join(bin, "sluice"), args...)
	c.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
	c.Dir = "/"
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(in), &out, &out
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := c.Run(); c.ProcessState == nil {
		d.t.Fatal(err)
	}
	return out.String(), c.ProcessState.ExitCode()
}

func (d *daemon) ownToken() string {
	d.t.Helper()
	path := filepath.Join(d.data, "token")
	text, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		d.t.Errorf("the token's file: %v, %v", info.Mode(), err)
	}
	return string(text)
}

// TestNobodyElseIsServed: a daemon runs what it is sent as its own user, so no other user of the machine may send it anything.
func TestNobodyElseIsServed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can call as somebody else")
	}
	d := up(t, three)
	file := spec("theirs", "items: {total: 10, perItem: 1ms}", `id -un > "$SLUICE_OUTPUT_DIR/who"`)
	server := "--server=" + d.addr
	for _, args := range [][]string{{"submit", "-f", "-"}, {"jobs"}, {"pause", "--all", "--for", "1h"}, {"agent", "key", "x"}, {"status"}} {
		text, code := d.stranger(file, nil, append(args, server)...)
		if code == 0 {
			t.Errorf("%v: exit 0: %s", args, text)
		}
	}
	text, code := d.stranger(file, nil, "submit", "-f", "-", server)
	if code == 0 {
		t.Errorf("a job of nobody's was taken: %s", text)
	}
	says(t, text, "serves user 0 alone", "you are user 65534", "SLUICE_TOKEN", filepath.Join(d.data, "token"))
	if text, code = d.stranger(file, []string{"SLUICE_TOKEN=wrong"}, "submit", "-f", "-", server); code == 0 {
		t.Errorf("with a wrong token: %s", text)
	}
	if jobs := d.must("jobs"); strings.Contains(jobs, "theirs") {
		t.Errorf("the job is there:\n%s", jobs)
	}
	// What is said in a request does not count.
	for _, header := range []string{"X-Forwarded-For: 127.0.0.1", "X-Real-Ip: 127.0.0.1", "Forwarded: for=127.0.0.1;by=root",
		"X-Forwarded-User: root", "Authorization: Bearer ", "Authorization: Bearer", "Remote-User: root"} {
		if code := d.curl(65534, "http://"+d.addr, header, "ListJobs"); code != "401" {
			t.Errorf("%s: %s", header, code)
		}
	}
	for _, path := range []string{"/metrics", "/", "/sluice.v1alpha1.SluiceService/ListJobs"} {
		if code := d.get(65534, path); code != "401" {
			t.Errorf("%s: %s", path, code)
		}
	}
	if code := d.get(65534, "/healthz"); code != "200" {
		t.Errorf("/healthz: %s", code)
	}
	// An agent of another user has its job's key, and gets as far as that is looked at.
	if code := d.curl(65534, "http://"+d.addr, "X: y", "Negotiate"); code == "401" {
		t.Errorf("agents are asked for the daemon's token")
	}
	// The token is proof enough.
	if text, code = d.stranger(file, []string{"SLUICE_TOKEN=" + d.ownToken()}, "submit", "-f", "-", server); code != 0 {
		t.Fatalf("with the token: exit %d: %s", code, text)
	}
	d.done("theirs")
	// It lives as long as the data.
	before := d.ownToken()
	d.kill()
	d.start()
	if d.ownToken() != before {
		t.Error("a restart made another token")
	}
	if text, code = d.stranger("", []string{"SLUICE_TOKEN=" + before}, "jobs", server); code != 0 {
		t.Errorf("after a restart: exit %d: %s", code, text)
	}
}

// curl calls a method as a user and returns the status; "-" where curl is not there.
func (d *daemon) curl(uid uint32, url, header, method string, more ...string) string {
	d.t.Helper()
	return d.request(uid, append([]string{"-X", "POST", "-H", "Content-Type: application/json", "-H", header, "-d", "{}",
		url + "/sluice.v1alpha1.SluiceService/" + method}, more...)...)
}

func (d *daemon) get(uid uint32, path string) string {
	d.t.Helper()
	return d.request(uid, "http://"+d.addr+path)
}

func (d *daemon) request(uid uint32, args ...string) string {
	d.t.Helper()
	program, err := exec.LookPath("curl")
	if err != nil {
		d.t.Skip("skipped from here on: there is no curl")
	}
	c := exec.Command(program, append([]string{"-s", "-o", "/dev/null", "-w", "%{http_code}"}, args...)...)
	c.Env, c.Dir = []string{"PATH=/usr/bin:/bin"}, "/"
	if uid != 0 || os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := c.Output()
	if err != nil {
		d.t.Errorf("curl %v: %v", args, err)
	}
	return string(out)
}

// TestTheSameUserNeedsNothing: whatever its HOME, its directory and its program are, by TCP of either kind or by the socket.
func TestTheSameUserNeedsNothing(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	c := exec.Command(filepath.Join(bin, "sluice"), "jobs", "--server", d.addr)
	c.Env, c.Dir = []string{}, "/"
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("without an environment: %v: %s", err, out)
	}
	socket := filepath.Join(d.data, "socket")
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	c = exec.Command(filepath.Join(bin, "sluice"), "status", "--server", "unix:"+socket)
	c.Env = []string{}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("by the socket: %v: %s", err, out)
	}
	resp, err := http.Post("http://"+d.addr+"/sluice.v1alpha1.SluiceService/About", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !json.Valid(text) {
		t.Errorf("a program: %s %s", resp.Status, text)
	}
}

// TestADaemonThatIsNotRoots: the other way round. Root is not its user, can read its token, and finds it beside the socket.
func TestADaemonThatIsNotRoots(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can start a daemon as somebody else")
	}
	d := newDaemon(t, three)
	open(t, d.dir)
	deep := filepath.Join(d.dir, strings.Repeat("a-long-name-", 10)) // longer than the address of a socket
	if err := os.Mkdir(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	d.data = filepath.Join(deep, "data")
	if err := os.Mkdir(d.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(d.data, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	d.user = &syscall.Credential{Uid: 65534, Gid: 65534}
	d.launch()
	d.until("the daemon answers its user", func() bool {
		_, code := d.stranger("", nil, "slices", "--server", d.addr)
		return code == 0
	})
	says(t, d.fails(1, nil, "jobs"), "serves user 65534 alone", "you are user 0")
	c := exec.Command(filepath.Join(bin, "sluice"), "submit", "-f", "-", "--server", "unix:"+filepath.Join(d.data, "socket"))
	c.Stdin = strings.NewReader(spec("one", "items: {total: 10, perItem: 1ms}", `id -u > "$SLUICE_OUTPUT_DIR/who"`))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("root by the socket: %v: %s", err, out)
	}
	d.token = d.ownToken()
	d.done("one")
	if out := d.must("output", "one", "--cat"); out != "65534\n" {
		t.Errorf("it ran as %q", out)
	}
	// A link where the token should be leads nowhere: root would send what it names to whoever listens.
	secret := d.write("secret", fmt.Sprintf("%064d", 7))
	path := filepath.Join(d.data, "token")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, path); err != nil {
		t.Fatal(err)
	}
	c = exec.Command(filepath.Join(bin, "sluice"), "jobs", "--server", "unix:"+filepath.Join(d.data, "socket"))
	if out, err := c.CombinedOutput(); err == nil {
		t.Errorf("root by the socket without a token: %s", out)
	}
}

// open lets every user get to a folder of the test's.
func open(t *testing.T, dir string) {
	t.Helper()
	for at := dir; strings.HasPrefix(at, os.TempDir()+"/"); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o711); err != nil {
			t.Fatal(err)
		}
	}
}
