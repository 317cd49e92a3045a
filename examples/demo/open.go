package main

import (
	"io"
	"os"
	"os/exec"
	"runtime"
)

// opener is the program that shows a picture to who sits here, empty if nobody does: the output is no terminal, it is a build
// server, or there is no display.
func opener(system string, tty bool, env func(string) string, find func(string) (string, error)) string {
	if !tty || env("CI") != "" {
		return ""
	}
	name := "open"
	if system != "darwin" {
		if env("DISPLAY") == "" && env("WAYLAND_DISPLAY") == "" {
			return ""
		}
		name = "xdg-open"
	}
	path, err := find(name)
	if err != nil {
		return ""
	}
	return path
}

// reveal opens a picture where it can, and says whether it did. What shows it outlives the demo.
func reveal(out io.Writer, picture string) bool {
	path := opener(runtime.GOOS, movable(out), os.Getenv, exec.LookPath)
	if path == "" {
		return false
	}
	show := exec.Command(path, picture)
	if show.Start() != nil {
		return false
	}
	return show.Process.Release() == nil
}
