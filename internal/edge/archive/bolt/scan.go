package bolt

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/archive"
)

// The store's pages as they lie in the file: a header of id (8 bytes), flags (2), count (2) and how many pages follow it (4); in a
// leaf then an element for each key of flags, position from the element on, and the lengths of key and value (4 each). Numbers are
// the machine's own, which is little endian wherever this runs.
const (
	headerBytes  = 16
	elementBytes = 16
	leafFlag     = 2
	// mostFollow bounds what is read as one page, in pages: damage may say anything.
	mostFollow = (archive.MaxPart + 1<<16) / 4096
)

// scan finds every part in a file that is whole, whatever the tree is like; free pages have some too.
func scan(path string, found func(archive.Part)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	size := os.Getpagesize()
	header := make([]byte, headerBytes)
	for at := int64(0); ; at += int64(size) {
		if _, err := f.ReadAt(header, at); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		id, flags, follow := binary.LittleEndian.Uint64(header), binary.LittleEndian.Uint16(header[8:]),
			binary.LittleEndian.Uint32(header[12:])
		if id != uint64(at)/uint64(size) || flags != leafFlag || follow > mostFollow {
			continue
		}
		page := make([]byte, (int(follow)+1)*size)
		n, err := f.ReadAt(page, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		leaf(page[:n], found)
	}
}

// leaf hands over the parts of one page.
func leaf(page []byte, found func(archive.Part)) {
	for i := range int(binary.LittleEndian.Uint16(page[10:])) {
		at := headerBytes + i*elementBytes
		if at+elementBytes > len(page) {
			return
		}
		field := func(n int) uint64 { return uint64(binary.LittleEndian.Uint32(page[at+n:])) }
		from := uint64(at) + field(4)
		middle, to := from+field(8), from+field(8)+field(12)
		if to > uint64(len(page)) || middle-from < 2 {
			continue
		}
		key, value := page[from:middle], page[middle:to]
		if r := protocol.Role(key[0]); r != protocol.Gate && r != protocol.Zone {
			continue // of an index
		}
		if p, err := openPart(key, value); err == nil && p.Check() == nil {
			found(p)
		}
	}
}
