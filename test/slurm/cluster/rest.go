package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// REST is a cluster's slurmrestd.
type REST struct {
	// URL of its socket, and who it asks Slurm as: whom this runs as, or nobody in the place of root, as which it refuses to run.
	URL, User string
}

// StartREST starts a slurmrestd on a socket, or, with byToken, on an address of this machine for who has a JWT; and waits for it. The
// cluster's folder must be open to its user.
func (c *Cluster) StartREST(ctx context.Context, byToken bool) (*REST, error) {
	if c.programs.path[restProgram] == "" {
		return nil, errors.New("slurmrestd is not installed")
	}
	as, name, err := c.restUser()
	if err != nil {
		return nil, err
	}
	// Without slurmdbd the plugins that ask it would end the others. Later releases have one plugin for all versions.
	plugin := "openapi/v0.0.38"
	list := exec.CommandContext(ctx, c.programs.path[restProgram], "-s", "list")
	list.Env, list.SysProcAttr = c.Env(), as
	if text, _ := list.CombinedOutput(); strings.Contains(string(text), "openapi/slurmctld") { // some versions end with 1 after a list
		plugin = "openapi/slurmctld"
	}
	auth, place, url := "rest_auth/local", "unix:"+c.restDir()+"/sock", "unix:"+c.restDir()+"/sock"
	var env []string
	network, address := "unix", c.restDir()+"/sock"
	if byToken {
		l, none := net.Listen("tcp", "127.0.0.1:0")
		if none != nil {
			return nil, none
		}
		network, address, auth = "tcp", l.Addr().String(), "rest_auth/jwt"
		place, url, env = address, "http://"+address, []string{"SLURM_JWT=daemon"}
		if err = l.Close(); err != nil {
			return nil, err
		}
	}
	if err = c.startAs(as, env, "slurmrestd", c.programs.path[restProgram], "-a", auth, "-s", plugin, place); err != nil {
		return nil, err
	}
	for until := time.Now().Add(upTime); time.Now().Before(until) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if there, none := new(net.Dialer).DialContext(ctx, network, address); none == nil {
			return &REST{url, name}, there.Close()
		}
	}
	return nil, fmt.Errorf("slurmrestd does not listen: %s", c.Tail("slurmrestd"))
}

func (c *Cluster) restDir() string { return filepath.Join(c.o.Dir, "rest") }

// restUser makes slurmrestd's folder, and says as whom it runs.
func (c *Cluster) restUser() (as *syscall.SysProcAttr, name string, err error) {
	u, err := user.Current()
	if err == nil && u.Uid == "0" {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, "", err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, "", err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, "", err
	}
	if err = os.Mkdir(c.restDir(), 0o755); err != nil {
		return nil, "", err
	}
	as = &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		err = os.Chown(c.restDir(), int(uid), int(gid))
	}
	return as, u.Username, err
}
