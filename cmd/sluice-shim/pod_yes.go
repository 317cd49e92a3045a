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
		if err := pod.Prepare(args[1], args[2], os.Getenv(pod.Sealed), os.Getenv(pod.KeyText)); err != nil {
			fmt.Fprintln(os.Stderr, "sluice-shim:", err)
			return 1, true
		}
		return 0, true
	}
	return 0, false
}
