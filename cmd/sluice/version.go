package main

// version and commit are set by the build.
var (
	version = "dev"
	commit  = "unknown"
)
