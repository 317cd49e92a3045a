//go:build !kubernetes

package main

// inPod does what is wanted of the program in a Pod, if args say that. It is not in this build: what speaks HTTP takes 6 MiB, and 4 ms of
// every start.
func inPod([]string) (status int, its bool) { return 0, false }
