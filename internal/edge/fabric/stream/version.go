package stream

import (
	"strconv"
	"strings"
	"unicode"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
)

// later raises the versions of links that this build says it speaks, for tests of upgrades (go build -ldflags "-X ...stream.later=1"): as a
// build of so many releases later would that has changed nothing else.
var later string //nolint:gochecknoglobals // the linker sets it, and nobody else

// Speaks is what this side says of the versions that it speaks, and of its build.
func Speaks(build string) *pb.Speaks {
	n, err := strconv.ParseUint(later, 10, 8)
	if err != nil {
		n = 0 // it is not set
	}
	s := &pb.Speaks{Oldest: Oldest, Newest: Newest + uint32(n), Build: build}
	if n > 0 {
		s.Oldest = s.Newest - 1
	}
	return s
}

// Together says whether a head and a machine speak a version in common. Of two that don't the older one is to be upgraded, a release at a
// time; the head comes first, so that none of its machines is ever newer.
func Together(head, machine *pb.Speaks) error {
	if head.GetOldest() <= machine.GetNewest() && machine.GetOldest() <= head.GetNewest() {
		return nil
	}
	older := "the head first"
	if machine.GetNewest() < head.GetOldest() {
		older = "the machine"
	}
	return errkind.Errorf(errkind.Unsupported, "the head (build %q) speaks versions %d to %d of links and this machine (build %q) %d to "+
		"%d, which is more than one release apart: upgrade %s, a release at a time",
		plain(head.GetBuild()), head.GetOldest(), head.GetNewest(),
		plain(machine.GetBuild()), machine.GetOldest(), machine.GetNewest(), older)
}

// Ahead says what to do about a machine that is newer than its head, with which it speaks all the same; empty: it is not.
func Ahead(head, machine *pb.Speaks) string {
	if machine.GetNewest() <= head.GetNewest() {
		return ""
	}
	return "this machine is a release ahead of its head, whose version of links it speaks: upgrade the head first the next time, since " +
		"with a machine that is another release ahead it has no words in common"
}

// mostBuild bounds the name of the other side's build, in bytes.
const mostBuild = 100

// plain is a build's name as it is kept, logged and printed: the other side may say anything.
func plain(build string) string {
	build = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, build[:min(len(build), mostBuild)])
	return strings.ToValidUTF8(build, "")
}
