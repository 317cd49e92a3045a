//go:build !linux

package watch

import (
	"fmt"
	"os"

	"sluice.dev/sluice/internal/edge/survival"
)

// Verb is the first argument of the program that is a watcher.
const Verb = "watch"

// Main says that there is no watcher here.
func Main([]string, func(kind, base string) (survival.Survival, string, error)) int {
	fmt.Fprintln(os.Stderr, "sluice-shim watch: a watcher needs Linux")
	return 2
}
