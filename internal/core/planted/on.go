//go:build planted

package planted

// in is the one bug of this process; set once by main, before anything else runs.
var in Bug //nolint:gochecknoglobals // exists only in builds that are broken on purpose

// In says whether bug b is in.
func In(b Bug) bool { return in == b }

// Any says whether a bug is in.
func Any() bool { return in != "" }

// Environ is what a child process needs to have the same bug in.
func Environ() []string { return []string{"SLUICE_PLANTED=" + string(in)} }

// Plant puts one bug in.
func Plant(b Bug) { in = b }
