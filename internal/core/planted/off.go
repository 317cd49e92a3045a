//go:build !planted

package planted

// In says whether bug b is in. Here never.
func In(Bug) bool { return false }

// Any says whether a bug is in. Here never.
func Any() bool { return false }

// Environ is what a child process needs to have the same bug in. Here nothing.
func Environ() []string { return nil }

// Plant does nothing in an ordinary build.
func Plant(Bug) {}
