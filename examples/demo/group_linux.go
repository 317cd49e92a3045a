package main

import "syscall"

// ownGroup gives a daemon a process group of its own, and SIGTERM if we are killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
