//go:build !linux

package host

// holders says what takes the most room of a data directory. That is looked at on Linux alone, as nodes are.
func holders(string) string { return "what of it the data directory has is not known on this system" }
