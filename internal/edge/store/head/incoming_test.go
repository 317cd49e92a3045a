package head

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

// FuzzIncoming: whatever frames a machine sends, for whatever is read, a read has the bytes of where it reads, or an error that stays.
// Bytes that belong nowhere in the object are 0xff, which it does not have.
func FuzzIncoming(f *testing.F) {
	f.Add(uint8(100), []byte{1, 0, 50, 1, 50, 50}, []byte{0, 60, 60, 40})
	f.Add(uint8(100), []byte{1, 0, 50, 1, 50, 20, 2, 0, 100}, []byte{0, 60, 0, 100})
	f.Add(uint8(10), []byte{1, 0, 11}, []byte{0, 10})
	f.Add(uint8(10), []byte{2, 0, 5, 1, 250, 5, 0, 0, 5}, []byte{0, 10})
	f.Fuzz(func(t *testing.T, size uint8, sent, reads []byte) {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(i % 251)
		}
		asks := uint32(0)
		over := errors.New("no more frames")
		in := &incoming{size: int64(size), stall: newWatch(time.Hour, func() {}),
			ask: func(n uint32, from int64) error {
				if n != asks+1 || from < 0 || from >= int64(size) {
					t.Fatalf("request %d from %d on, after %d", n, from, asks)
				}
				asks = n
				return nil
			},
			receive: func() (*pb.PutFrame, error) {
				if len(sent) < 3 {
					return nil, over
				}
				frame := &pb.PutFrame{Request: uint32(sent[0] % 4), Offset: int64(int8(sent[1])), Data: make([]byte, sent[2])}
				for i := range frame.Data {
					frame.Data[i] = 0xff
					if at := frame.Offset + int64(i); at >= 0 && at < int64(size) {
						frame.Data[i] = content[at]
					}
				}
				sent = sent[3:]
				return frame, nil
			}}
		defer in.stall.stop()
		var broken error
		for ; len(reads) >= 2; reads = reads[2:] {
			off, p := int64(reads[0]), make([]byte, reads[1])
			n, err := in.ReadAt(p, off)
			if n < len(p) && err == nil || n > len(p) {
				t.Fatalf("%d bytes of %d from %d on, and no error", n, len(p), off)
			}
			if n > 0 && (off+int64(n) > int64(size) || !bytes.Equal(p[:n], content[off:off+int64(n)])) {
				t.Fatalf("from %d on it read %v", off, p[:n])
			}
			if broken != nil && (n > 0 || !errors.Is(err, broken)) {
				t.Fatalf("after %v it read %d bytes, %v", broken, n, err)
			}
			if err != nil && !errors.Is(err, io.EOF) {
				broken = err
			}
			if !errors.Is(in.failed(), broken) {
				t.Fatalf("it says that it failed for %v, want %v", in.failed(), broken)
			}
		}
	})
}
