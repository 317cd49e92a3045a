//go:build unix

package soak

import "syscall"

func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
