package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// defaults are the lines of slurm.conf that Config.Extra may replace, by key: Slurm's own, but that it needs no control groups, looks for
// jobs to start all the time, and keeps no accounts unless Accounting says so.
const defaults = `ClusterName=sluice
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=2,bf_resolution=60
SlurmdParameters=config_overrides
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
MpiDefault=none
ReturnToService=2`

// preempting are lines of a cluster whose partition preempt gives way to normal.
const preempting = `PreemptType=preempt/partition_prio
PreemptMode=CANCEL`

// preemptPartitions are those of a cluster with Preempt, unless it has its own.
const preemptPartitions = `PartitionName=normal Nodes=ALL Default=YES MaxTime=UNLIMITED PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=preempt Nodes=ALL MaxTime=4:00:00 PriorityTier=1 PreemptMode=CANCEL GraceTime=10 State=UP`

// Node is the name of a cluster's node.
func Node(i int) string { return fmt.Sprintf("n%d", i) }

// configure writes the key, slurm.conf, gres.conf and the folders.
func (c *Cluster) configure() error {
	ports := make([]int, 2+c.o.Nodes)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	dir := c.o.Dir
	lines := strings.Split(defaults, "\n")
	if c.o.Preempt {
		lines = append(lines, strings.Split(preempting, "\n")...)
	}
	if c.o.Accounting {
		for _, line := range c.accountingLines(ports[1]) {
			lines = replace(lines, line)
		}
	}
	for _, extra := range c.o.Extra {
		lines = replace(lines, extra)
	}
	lines = append(lines, fmt.Sprintf("SlurmctldHost=%s(127.0.0.1)", host), fmt.Sprintf("SlurmctldPort=%d", ports[0]),
		"SlurmUser="+me.Username, "SlurmdUser="+me.Username, "AuthInfo=socket="+dir+"/munge.sock", "StateSaveLocation="+dir+"/state",
		"SlurmdSpoolDir="+dir+"/spool/%n", "SlurmctldPidFile="+dir+"/slurmctld.pid", "SlurmdPidFile="+dir+"/slurmd-%n.pid")
	if c.programs.root != "" {
		lines = append(lines, "PluginDir="+c.programs.plugins())
	}
	dirs := []string{dir, dir + "/state", dir + "/spool", dir + "/dev", dir + "/sbin", c.Bin()}
	node := fmt.Sprintf("CPUs=%d RealMemory=%d State=UNKNOWN", c.o.CPUs, c.o.Memory)
	gres, files, err := c.devices()
	if err != nil {
		return err
	}
	if len(gres) > 0 {
		lines = append(lines, "GresTypes=gpu")
		node += " Gres=" + strings.Join(c.o.Gres, ",")
	}
	for i := range c.o.Nodes {
		dirs = append(dirs, dir+"/spool/"+Node(i))
		lines = append(lines, fmt.Sprintf("NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d %s", Node(i), host, ports[2+i], node))
	}
	partitions := c.o.Partitions
	switch {
	case len(partitions) == 0 && c.o.Preempt:
		partitions = strings.Split(preemptPartitions, "\n")
	case len(partitions) == 0:
		partitions = []string{"PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED State=UP"}
	}
	lines = append(append(lines, partitions...), "")
	for _, d := range dirs {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	key := make([]byte, 128)
	_, _ = rand.Read(key) // never fails (package crypto/rand)
	errs := []error{os.WriteFile(dir+"/munge.key", key, 0o400), os.WriteFile(c.conf(), []byte(strings.Join(lines, "\n")), 0o644),
		os.WriteFile(dir+"/gres.conf", []byte(strings.Join(append(gres, ""), "\n")), 0o644)}
	if c.o.Accounting {
		errs = append(errs, c.configureAccounting(me.Username, ports[1]))
	}
	for _, f := range files {
		errs = append(errs, os.WriteFile(f, nil, 0o644))
	}
	for _, name := range []string{"munged", "slurmctld", "slurmd", "slurmstepd"} {
		errs = append(errs, os.Symlink(c.programs.path[name], c.daemon(name)))
	}
	for _, name := range []string{"sbatch", "squeue", "scontrol", "scancel", "sinfo", "srun", "sacct", "sacctmgr"} {
		script := "#!/bin/sh\nexport SLURM_CONF='" + c.conf() + "'\n"
		if lib := c.programs.libraries(); lib != "" {
			script += "export LD_LIBRARY_PATH='" + lib + "'\n"
		}
		script += "exec '" + c.programs.path[name] + "' \"$@\"\n"
		errs = append(errs, os.WriteFile(filepath.Join(c.Bin(), name), []byte(script), 0o755))
	}
	return errors.Join(errs...)
}

// daemon is the path by which a daemon is started. Debian calls slurmctld slurmctld-wlm; one that is started as that does not know that it
// is a daemon, and finds no devices.
func (c *Cluster) daemon(name string) string { return filepath.Join(c.o.Dir, "sbin", name) }

func (c *Cluster) conf() string { return filepath.Join(c.o.Dir, "slurm.conf") }

// replace puts a line of slurm.conf in the place of the one with its key.
func replace(lines []string, line string) []string {
	key, _, _ := strings.Cut(line, "=")
	for i, l := range lines {
		if strings.HasPrefix(l, key+"=") {
			lines[i] = line
			return lines
		}
	}
	return append(lines, line)
}

// devices are the lines of gres.conf, and the files that stand for devices.
func (c *Cluster) devices() (lines, files []string, err error) {
	for _, g := range c.o.Gres {
		words := strings.Split(g, ":")
		n := 0
		if _, failed := fmt.Sscan(words[len(words)-1], &n); failed != nil || len(words) != 3 || n < 1 {
			return nil, nil, fmt.Errorf("gres %q: want name:type:count", g)
		}
		var list []string
		for range n {
			list = append(list, fmt.Sprintf("%s/dev/nv%d", c.o.Dir, len(files)+len(list)))
		}
		files = append(files, list...)
		for i := range c.o.Nodes {
			lines = append(lines, fmt.Sprintf("NodeName=%s Name=%s Type=%s File=%s", Node(i), words[0], words[1], strings.Join(list, ",")))
		}
	}
	return lines, files, nil
}
