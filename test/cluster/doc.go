// Package cluster strikes a cluster of real daemons, a head and nine machines, at random: processes are killed and stopped, the power is
// cut, links fail one way or both, lose or delay packets, disks fill up, data directories are lost or old. Then it reads what the jobs
// have left, in their outputs and in files of witnesses that no part of Sluice knows: every job that was accepted must be complete, with
// each unit in its committed output once (make cluster).
//
// Each machine has namespaces of its own for the network, processes, mounts, its name and control groups, and clocks of its own. They
// reach each other by a switch that the test itself is, since a kernel without netem neither loses nor delays packets. All of it is below
// one process in namespaces of its own: when that ends, so does everything, and what was mounted is gone.
//
// It takes root, and Linux. All but this file are tests.
package cluster
