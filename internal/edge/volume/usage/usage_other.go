//go:build !linux

package usage

// Of says how much space a data directory takes. It is known on Linux alone, where nodes run.
func Of(string) string { return "what of it the data directory has is not known on this system" }
