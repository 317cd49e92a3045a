package timezone

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Caller is the time zone of the user who runs the program. Where only its offset can be found it is that, such as +05:30, and why is not
// empty.
func Caller(now time.Time) (name, why string) {
	return caller(now, "/etc", os.LookupEnv)
}

// caller looks at TZ, else at the link etc/localtime and the file etc/timezone. A zone whose clock differs from the program's is passed
// over.
func caller(now time.Time, etc string, environment func(string) (string, bool)) (name, why string) {
	agrees := func(name string) bool {
		loc, err := Load(name)
		if err != nil {
			return false
		}
		_, a := now.In(loc).Zone()
		_, b := now.Zone()
		return a == b
	}
	var names []string
	tz, set := environment("TZ")
	if set {
		if tz = strings.TrimPrefix(tz, ":"); tz == "" {
			tz = "UTC"
		}
		names = append(names, below(tz))
		why = "TZ=" + tz + " names no time zone"
	} else {
		file := filepath.Join(etc, "localtime")
		if to, err := os.Readlink(file); err == nil {
			names = append(names, below(to))
		}
		if to, err := filepath.EvalSymlinks(file); err == nil {
			names = append(names, below(to))
		}
		if text, err := os.ReadFile(filepath.Join(etc, "timezone")); err == nil { //nolint:gosec // a fixed place
			names = append(names, strings.TrimSpace(string(text)))
		}
		if _, err := os.Stat(file); err != nil {
			names = append(names, "UTC")
		}
		why = "neither TZ nor " + file + " names this machine's time zone"
	}
	for _, n := range names {
		if agrees(n) {
			return n, ""
		}
	}
	return now.Format("-07:00"), why
}

// below is a zone's name in a path into a database of time zones.
func below(path string) string {
	if _, name, found := strings.Cut(path, "zoneinfo/"); found {
		return strings.TrimPrefix(name, "posix/")
	}
	return path
}
