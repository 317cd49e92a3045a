//go:build !linux

package host

// usage says how much space a data directory takes. It is known on Linux alone, where nodes run.
func usage(string) string { return "what of it the data directory has is not known on this system" }
