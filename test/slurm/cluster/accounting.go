package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

// books are where slurmdbd and its database are.
type books struct {
	slurmdbd, mariadbd string
	// root is the folder that packages were unpacked in; empty: they are installed.
	root string
}

// FindAccounting says whether Start can start a cluster with Accounting, as Find does.
func FindAccounting() error {
	if err := Find(); err != nil {
		return err
	}
	_, err := findBooks()
	if err == nil {
		return nil
	}
	if failed := fetch("accounting", accountingPackageNames); failed != nil {
		return fmt.Errorf("%w, and Debian's packages can't be had: %w", err, failed)
	}
	_, err = findBooks()
	return err
}

func findBooks() (books, error) {
	b, err := lookBooks("")
	if err == nil {
		return b, nil
	}
	dir, failed := unpackedIn()
	if failed != nil {
		return b, errors.Join(err, failed)
	}
	root := filepath.Join(dir, "accounting")
	if _, none := os.Stat(root); none != nil {
		return b, err
	}
	return lookBooks(root)
}

func lookBooks(root string) (books, error) {
	b := books{program(root, "slurmdbd"), program(root, "mariadbd"), root}
	switch {
	case b.slurmdbd == "":
		return b, errors.New("slurmdbd is not installed")
	case b.mariadbd == "":
		return b, errors.New("mariadbd is not installed")
	}
	for _, need := range append(b.tables(), b.plugins()+"/accounting_storage_mysql.so") {
		if _, err := os.Stat(need); err != nil {
			return b, fmt.Errorf("slurmdbd's database: %w", err)
		}
	}
	return b, nil
}

// tables are the files of SQL that make a database's own tables.
func (b books) tables() []string {
	return []string{b.share() + "/mysql_system_tables.sql", b.share() + "/mysql_system_tables_data.sql"}
}

func (b books) share() string { return b.root + "/usr/share/mysql" }

func (b books) plugins() string { return b.root + "/usr/lib/x86_64-linux-gnu/slurm-wlm" }

// environment of the daemons beside Slurm's own: slurmdbd learns only from it where the database's socket is.
func (b books) environment(p *programs, dir string) []string {
	if b.slurmdbd == "" {
		return nil
	}
	env := []string{"MYSQL_UNIX_PORT=" + dir + "/mariadb.sock"}
	if b.root != "" {
		libraries := b.root + "/usr/lib/x86_64-linux-gnu"
		if own := p.libraries(); own != "" {
			libraries += ":" + own
		}
		env = append(env, "LD_LIBRARY_PATH="+libraries)
	}
	return env
}

// accountingLines are those of slurm.conf for a cluster with accounting. Slurm takes the munge socket of this connection from a key of a
// password alone.
func (c *Cluster) accountingLines(port int) []string {
	return []string{"AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1",
		fmt.Sprintf("AccountingStoragePort=%d", port), "AccountingStoragePass=" + c.o.Dir + "/munge.sock"}
}

// configureAccounting writes slurmdbd.conf, which nobody else may read.
func (c *Cluster) configureAccounting(me string, port int) error {
	dir := c.o.Dir
	plugins := c.programs.plugins()
	if c.books.root != "" {
		plugins += ":" + c.books.plugins()
	}
	text := strings.Join([]string{"DbdHost=localhost", "DbdAddr=127.0.0.1", fmt.Sprintf("DbdPort=%d", port), "SlurmUser=" + me,
		"AuthType=auth/munge", "AuthInfo=socket=" + dir + "/munge.sock", "PidFile=" + dir + "/slurmdbd.pid", "PluginDir=" + plugins,
		"StorageType=accounting_storage/mysql", "StorageHost=localhost", "StorageUser=" + me, "StorageLoc=slurm_acct_db", ""}, "\n")
	return errors.Join(os.Mkdir(dir+"/database", 0o700), os.WriteFile(dir+"/slurmdbd.conf", []byte(text), 0o600),
		os.Symlink(c.books.slurmdbd, c.daemon("slurmdbd")), os.Symlink(c.books.mariadbd, c.daemon("mariadbd")))
}

// startAccounting makes a database, starts it and slurmdbd, and has the cluster known there.
func (c *Cluster) startAccounting(ctx context.Context) error {
	me, err := user.Current()
	if err != nil {
		return err
	}
	dir := c.o.Dir
	// No network, its user by the socket alone, and nothing that would make a test wait for a disk.
	args := []string{"--no-defaults", "--datadir=" + dir + "/database", "--lc-messages-dir=" + c.books.share(),
		"--character-sets-dir=" + c.books.share() + "/charsets", "--skip-networking", "--socket=" + dir + "/mariadb.sock",
		"--pid-file=" + dir + "/mariadb.pid", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M",
		"--innodb-flush-log-at-trx-commit=0"}
	if me.Uid == "0" {
		args = append(args, "--user=root")
	}
	if err = c.makeDatabase(ctx, me.Username, args); err != nil {
		return err
	}
	if err = c.start("mariadbd", "mariadbd", args...); err != nil {
		return err
	}
	if err = c.await(ctx, "mariadbd", exists(dir+"/mariadb.sock")); err != nil {
		return err
	}
	if err = c.start("slurmdbd", "slurmdbd", "-D"); err != nil {
		return err
	}
	return c.await(ctx, "slurmdbd", func() error {
		_, err := c.Run(ctx, "sacctmgr", "-i", "add", "cluster", "sluice")
		return err
	})
}

// makeDatabase makes its own tables, Slurm's empty database, and a user that is known by who is at the other end of the socket.
func (c *Cluster) makeDatabase(ctx context.Context, me string, args []string) error {
	sql := "create database mysql;\nuse mysql;\nset @auth_root_socket='" + me + "';\n"
	for _, path := range c.books.tables() {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sql += string(text) + "\n"
	}
	cmd := exec.CommandContext(ctx, c.daemon("mariadbd"), append(args, "--bootstrap")...)
	cmd.Env = append(c.Env(), c.books.environment(&c.programs, c.o.Dir)...)
	cmd.Stdin = strings.NewReader(sql + "create database slurm_acct_db;\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadbd --bootstrap: %w: %s", err, out)
	}
	return nil
}

// exists says whether a file is there.
func exists(path string) func() error {
	return func() error {
		_, err := os.Stat(path)
		return err
	}
}

// await waits until a daemon answers.
func (c *Cluster) await(ctx context.Context, name string, answers func() error) error {
	for until := time.Now().Add(upTime); ; time.Sleep(50 * time.Millisecond) {
		err := answers()
		if err == nil {
			return nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return fmt.Errorf("%s does not answer: %w: %s", name, err, c.Tail(name))
		}
	}
}
