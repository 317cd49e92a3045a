// Package tape keeps what the actors of one boot were given, so that a run can be played again: the facts they were
// recovered from, then every input with its time, each followed by the actor's digest. It is a record for finding out,
// not for recovering: unsynced, rotating, capped, and never a reason to stop the daemon. It must not know what the
// messages mean, and it decides nothing.
//
// A tape is a folder of segments, boot after boot. A segment is a line of magic and records of
// length (uint32), CRC-32C (uint32), kind (byte) and payload; its first record is the header.
package tape

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Header describes what made a tape. It is at the start of every segment.
type Header struct {
	// Boot names the run of the daemon; boots sort by start.
	Boot string `json:"boot"`
	// Segment counts from 0 within the boot; First is the number of its first record after the header.
	Segment int    `json:"segment"`
	First   uint64 `json:"first"`
	// Version and Commit of the build that made it.
	Version string           `json:"version"`
	Commit  string           `json:"commit"`
	Started quantity.Instant `json:"started"`
	// Config is the actors' configuration, as the driver wrote it.
	Config json.RawMessage `json:"config,omitempty"`
}

// EntryKind is what an entry of a tape records. The values are part of the format.
type EntryKind byte

const (
	// Recovered: Fact was applied at boot.
	Recovered EntryKind = 'f'
	// RecoverCall: Actor's Recover was called at Now.
	RecoverCall EntryKind = 'r'
	// StepCall: Actor's Step was called at Now with Message.
	StepCall EntryKind = 's'
	// Digest: the digest of the actor of the call before, after that call.
	Digest EntryKind = 'd'
	// Lost: this many records are missing here (a full disk); what follows can't be played.
	Lost EntryKind = 'l'

	headerKind EntryKind = 'h'
)

// Entry is one thing on a tape.
type Entry struct {
	Kind    EntryKind
	Actor   protocol.Address
	Now     quantity.Instant
	Message protocol.Message
	Fact    protocol.Fact
	Digest  uint64
	// Missing records, of a Lost entry.
	Missing uint64
}

const (
	magic = "SLUICE TAPE 3\n"
	// frame is the length of a record's length and checksum.
	frame = 8
	// maxRecord bounds what a reader believes of a length: a Submit with a large profile stays far below.
	maxRecord = 64 << 20
	suffix    = ".tape"
)

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func segmentPath(dir, boot string, segment int) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%06d%s", boot, segment, suffix))
}

// parseName splits a segment's file name.
func parseName(name string) (boot string, segment int, ok bool) {
	base, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return "", 0, false
	}
	i := strings.LastIndexByte(base, '-')
	if i <= 0 {
		return "", 0, false
	}
	if _, err := fmt.Sscanf(base[i+1:], "%d", &segment); err != nil || segment < 0 {
		return "", 0, false
	}
	return base[:i], segment, true
}
