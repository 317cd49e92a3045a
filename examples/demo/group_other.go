//go:build !linux

package main

import "syscall"

// ownGroup is only compiled: nodes are Linux, and the daemon says so.
func ownGroup() *syscall.SysProcAttr { return nil }
