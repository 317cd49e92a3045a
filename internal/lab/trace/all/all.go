// Package all is the table of trace formats. Only the command line and tests import it.
package all

import (
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/azure"
	"sluice.dev/sluice/internal/lab/trace/batsim"
	"sluice.dev/sluice/internal/lab/trace/carma"
	"sluice.dev/sluice/internal/lab/trace/fgdorder"
	"sluice.dev/sluice/internal/lab/trace/fgdtable"
	"sluice.dev/sluice/internal/lab/trace/genai"
	"sluice.dev/sluice/internal/lab/trace/helios"
	"sluice.dev/sluice/internal/lab/trace/miso"
	"sluice.dev/sluice/internal/lab/trace/mooncake"
	"sluice.dev/sluice/internal/lab/trace/openb"
	"sluice.dev/sluice/internal/lab/trace/philly"
	"sluice.dev/sluice/internal/lab/trace/swf"
)

// Formats lists every format, jobs first, then requests, series, measurements and results.
func Formats() []trace.Format {
	return []trace.Format{
		philly.Format(),
		swf.Format(),
		swf.InBytes(),
		openb.Format(),
		azure.Format(),
		mooncake.Format(),
		helios.Format(),
		genai.Format(),
		miso.Format(),
		carma.Format(),
		batsim.Format(),
		fgdtable.Format(),
		fgdorder.Format(),
	}
}

// ByName finds a format. The error for a name that is none lists the names.
func ByName(name string) (trace.Format, error) {
	var known []string
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
		known = append(known, "\n  "+f.Name+": "+f.Doc)
	}
	return trace.Format{}, errkind.Errorf(errkind.NotFound, "trace format %q is not known; want one of%s", name, strings.Join(known, ""))
}
