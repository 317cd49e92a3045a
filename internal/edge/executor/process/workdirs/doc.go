// Package workdirs has the work directories that jobs were submitted with, as subjobs get them: unpacked once on a node, and copied for
// each where there is no overlay.
package workdirs
