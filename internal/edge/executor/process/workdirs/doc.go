// Package workdirs unpacks jobs' work directories: once on a node, and copied for each subjob where there is no overlay.
package workdirs
