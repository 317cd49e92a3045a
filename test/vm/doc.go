// Package vm runs the real supervisor and the real process executor on a machine whose kernel holds memory: cgroup v2 with
// its memory controller, as root. Few build machines have that, so the tests bring their own: TestInVM packs this test
// program as the only file of a small virtual machine, where it is process 1, prepares the machine, runs the tests named
// TestGuest, and powers off. `make vmtest` finds emulator and kernel; no hardware virtualization is needed.
package vm
