//go:build amd64 || arm64

package supervisor

// split makes the system call trap, which makes a child with a stack of its own. The child calls the function whose code is at child,
// which has no arguments and does not return; split returns in the parent alone.
func split(trap, arg0, arg1, child uintptr) (r uintptr)
