package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// packageNames are Debian's with Slurm's programs and what they need.
var packageNames = strings.Fields("slurmctld slurmd slurmrestd slurm-client slurm-wlm-basic-plugins slurm-wlm-plugins " +
	"slurm-wlm-jwt-plugin munge libmunge2 libhwloc15 libjson-c5 liblua5.1-0 libnuma1 libyaml-0-2 libdbus-1-3 liblz4-1 libreadline8 " +
	"libhttp-parser2.9 libpam0g libjwt0 libjansson4 libbz2-1.0 libgcrypt20")

// accountingPackageNames are those with slurmdbd and its database.
var accountingPackageNames = strings.Fields("slurmdbd slurm-wlm-mysql-plugin mariadb-server-core libmariadb3 libaio1 liburing2")

// programNames are those that a cluster is made of.
var programNames = []string{"munged", "slurmctld", "slurmd", "slurmstepd", "sbatch", "squeue", "scontrol", "scancel", "sinfo", "srun",
	"sacct", "sacctmgr"}

// restProgram is one that a cluster may do without.
const restProgram = "slurmrestd"

// programs are where a Slurm's are.
type programs struct {
	path map[string]string
	// root is the folder that packages were unpacked in; empty: they are installed.
	root string
}

// unpackedIn is where packages are unpacked: .tmp/slurm of the module, which git ignores.
func unpackedIn() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".tmp", "slurm"), nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("there is no go.mod above this folder")
		}
		dir = up
	}
}

// maxFetch is how long packages may take to come.
const maxFetch = 5 * time.Minute

// Find says whether there is a Slurm that Start can start: installed, or Debian's packages unpacked below .tmp/slurm, which it fetches
// where they are not. The error says what is missing.
func Find() error {
	_, err := find()
	if err == nil {
		return nil
	}
	if failed := fetch("root", packageNames); failed != nil {
		return fmt.Errorf("%w, and Debian's packages can't be had: %w", err, failed)
	}
	_, err = find()
	return err
}

// FindREST says whether there is a slurmrestd beside what Find has found.
func FindREST() error {
	p, err := find()
	if err == nil && p.path[restProgram] == "" {
		err = fmt.Errorf("%s is not installed; if Debian's packages lie below .tmp/slurm, remove them, and they are fetched with it",
			restProgram)
	}
	return err
}

func find() (programs, error) {
	p, err := look("")
	if err == nil {
		return p, nil
	}
	dir, failed := unpackedIn()
	if failed != nil {
		return p, errors.Join(err, failed)
	}
	root := filepath.Join(dir, "root")
	if _, none := os.Stat(root); none != nil {
		return p, err
	}
	return look(root)
}

// look finds the programs below a root; empty: on PATH, and where administrators' programs are.
func look(root string) (programs, error) {
	p := programs{map[string]string{}, root}
	for _, name := range append(slices.Clone(programNames), restProgram) {
		if p.path[name] = program(root, name); p.path[name] == "" && name != restProgram {
			return p, fmt.Errorf("%s is not installed", name)
		}
	}
	return p, nil
}

// program is the path of one below a root, as look takes it; empty: it is not there.
func program(root, name string) string {
	dirs := []string{"", "/usr/sbin", "/sbin"}
	if root != "" {
		dirs = []string{root + "/usr/bin", root + "/usr/sbin"}
	}
	for _, dir := range dirs {
		for _, file := range []string{name, name + "-wlm"} { // Debian's own name of the daemons
			if path, err := exec.LookPath(filepath.Join(dir, file)); err == nil {
				return path
			}
		}
	}
	return ""
}

// fetch downloads Debian's packages and unpacks them in a folder of .tmp/slurm. It installs nothing, and needs no rights.
func fetch(folder string, packages []string) (err error) {
	ctx, end := context.WithTimeout(context.Background(), maxFetch)
	defer end()
	dir, err := unpackedIn()
	if err != nil {
		return err
	}
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	run := func(name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = made
		if out, failed := cmd.CombinedOutput(); failed != nil {
			return fmt.Errorf("%s %s: %w: %s", name, args[0], failed, out)
		}
		return nil
	}
	if err = run("apt-get", append([]string{"-q", "download"}, packages...)...); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(made, "*.deb"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err = run("dpkg", "-x", f, filepath.Join(made, "root")); err != nil {
			return err
		}
	}
	if err = os.Rename(filepath.Join(made, "root"), filepath.Join(dir, folder)); errors.Is(err, os.ErrExist) {
		return nil // another was faster
	}
	return err
}

// environment of the programs.
func (p programs) environment(conf string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return strings.HasPrefix(name, "SLURM") || strings.HasPrefix(name, "SBATCH") || strings.HasPrefix(name, "SQUEUE")
	})
	env = append(env, "SLURM_CONF="+conf)
	if p.root != "" {
		env = append(env, "PATH="+p.root+"/usr/bin:"+os.Getenv("PATH"), "LD_LIBRARY_PATH="+p.libraries())
	}
	return env
}

// libraries is where those of unpacked programs are; empty: where the system has them.
func (p programs) libraries() string {
	if p.root == "" {
		return ""
	}
	lib := p.root + "/usr/lib/x86_64-linux-gnu"
	return lib + "/slurm-wlm:" + lib + ":" + p.root + "/lib/x86_64-linux-gnu"
}

// plugins is where Slurm's are.
func (p programs) plugins() string { return p.root + "/usr/lib/x86_64-linux-gnu/slurm-wlm" }
