package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// made writes files of clusters that never were.
type made struct {
	*testing.T
	folder string
}

func (m made) file(name, content string) string {
	m.Helper()
	path := filepath.Join(m.folder, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		m.Fatal(err)
	}
	return path
}

// slurm is a week of six machines as sacct and scontrol print them, with clocks that name no time zone.
func (m made) slurm() (accounting, nodes string) {
	var b, n strings.Builder
	b.WriteString("JobIDRaw|JobID|User|Account|Partition|State|Submit|Eligible|Start|End|Timelimit|AllocNodes|AllocTRES|NodeList\n")
	const machines, gpus, days = 6, 4, 7
	draw := uint32(1)
	next := func(below uint32) int { // a generator that everybody can follow
		draw = draw*1664525 + 1013904223
		return int(draw >> 8 % below)
	}
	id := 0
	for machine := range machines {
		fmt.Fprintf(&n, "NodeName=gpu%d Arch=x86_64 CPUTot=64 Gres=gpu:a100:%d State=IDLE Partitions=%s\n", machine+1, gpus,
			[]string{"debug", "long"}[machine%2])
		for at := 0; at < days*24*60; { // minutes
			long := 10 + next(300)
			held := 1 + next(gpus)
			id++
			stamp := func(minute int) string {
				return fmt.Sprintf("2026-03-%02dT%02d:%02d:00", 2+minute/1440, minute/60%24, minute%60)
			}
			fmt.Fprintf(&b, "%d|%d|u%d|a|%s|COMPLETED|%s|%s|%s|%s|06:00:00|1|gres/gpu=%[9]d,gres/gpu:a100=%[9]d|gpu%[10]d\n",
				id, id, next(20),
				[]string{"debug", "long"}[machine%2], stamp(max(0, at-next(20))), stamp(at), stamp(at), stamp(at+long), held, machine+1)
			at += long + next(90)
		}
	}
	return m.file("sacct.txt", b.String()), m.file("nodes.txt", n.String())
}

// swf is four days of eight processors in the Standard Workload Format.
func (m made) swf() string {
	var b strings.Builder
	b.WriteString("; MaxProcs: 8\n")
	for i := range 300 {
		fmt.Fprintf(&b, "%d %d %d %d %d -1 -1 %[5]d 7200 -1 1 1 1 -1 1 1 -1 -1\n", i+1, i*1200, i%7*30, 600+i*i%5000, 1+i%3)
	}
	return m.file("jobs.swf", b.String())
}

// table is five days of jobs as Philly's are published, with submissions and no starts.
func (m made) table() string {
	var b strings.Builder
	b.WriteString("timestamp,duration,num_gpus,gpu_time,cluster\n")
	for i := range 400 {
		gpus, long := 1+i%4, 300+i*i%9000
		fmt.Fprintf(&b, "2017-09-%02d %02d:%02d:00,%d,%d,%d,abc\n", 4+i/80, i%80*18/60, i%80*18%60, long, gpus, gpus*long)
	}
	return m.file("table.csv", b.String())
}

// backlog is a list of jobs of one's own.
func (m made) backlog() string {
	return m.file("mine.yml", "- {at: 0s, name: scan, items: {total: 1000, perItem: 10s}, startup: 20s, memory: 1Gi}\n")
}
