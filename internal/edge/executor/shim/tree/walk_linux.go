package tree

import (
	"bytes"
	"os"
	"strconv"
)

// Member is a process of a tree with its parent's number.
type Member struct {
	Process
	Parent int
	// Threads it has.
	Threads int
}

// Below returns the living descendants of a process, not itself, parents before children. What is born while it looks
// may be missed, so whoever wants to end a tree must look again until nothing is left.
func Below(root int) []Member {
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"); err == nil {
		return byChildren(root)
	}
	return byParents(root)
}

// byChildren walks down the kernel's own lists (CONFIG_PROC_CHILDREN): its cost depends on the tree alone.
func byChildren(root int) (found []Member) {
	type node struct{ pid, threads int }
	queue, seen := []node{{pid: root}}, map[int]bool{root: true}
	for len(queue) > 0 {
		parent := queue[0]
		queue = queue[1:]
		for _, pid := range children(parent.pid, parent.threads) {
			if seen[pid] {
				continue
			}
			seen[pid] = true
			s, err := readStat(pid)
			if err == nil && !s.dead() {
				found = append(found, Member{Process{pid, s.started}, parent.pid, s.threads})
			}
			queue = append(queue, node{pid, s.threads}) // a dead one's children may not have moved yet
		}
	}
	return found
}

// children of all threads of a process. Most have one thread, and then there is nothing to list: of thousands this halves the time.
func children(pid, threads int) (all []int) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	if threads == 1 {
		return childrenIn(dir + "/" + strconv.Itoa(pid) + "/children")
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	tasks, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, t := range tasks {
		all = append(all, childrenIn(dir+"/"+t+"/children")...)
	}
	return all
}

func childrenIn(path string) (all []int) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for _, f := range bytes.Fields(data) {
		if pid, err := strconv.Atoi(string(f)); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// byParents reads every process of the machine.
func byParents(root int) (found []Member) {
	all, err := pids()
	if err != nil {
		return nil
	}
	below := map[int][]Member{}
	for _, pid := range all {
		if s, err := readStat(pid); err == nil {
			below[s.parent] = append(below[s.parent], Member{Process{pid, s.started}, s.parent, s.threads})
		}
	}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, m := range below[queue[0]] {
			if m.Alive() {
				found = append(found, m)
			}
			queue = append(queue, m.PID)
		}
	}
	return found
}
