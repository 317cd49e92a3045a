//go:build kubernetes

package main

import (
	"fmt"
	"os"

	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// inPod does what is wanted of the program in a Pod, if args say that.
func inPod(args []string) (status int, its bool) {
	switch {
	case len(args) > 0 && args[0] == pod.Verb:
		return pod.Main(args[1:]), true
	case len(args) == 3 && args[0] == pod.Install:
		return failed(pod.Prepare(args[1], args[2], os.Getenv(pod.Sealed), os.Getenv(pod.KeyText))), true
	case len(args) == 3 && args[0] == pod.Lend:
		return failed(pod.Equip(args[1], args[2])), true
	}
	return 0, false
}

// failed is the exit status after an error, which it prints; 0 after none.
func failed(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "sluice-shim:", err)
	return 1
}
