package head

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
)

// incoming is the source that the head's store reads while a machine uploads: its bytes come as they are read, from where the store
// begins, which is where an earlier upload broke off. A store that reads something else asks the machine for that.
type incoming struct {
	size int64
	// receive returns the next frame, ask tells the machine from where its bytes are wanted, under which number.
	receive func() (*pb.PutFrame, error)
	ask     func(request uint32, from int64) error
	// stall ends receive when it has brought nothing of use for too long. It counts while receive is waited for.
	stall *watch

	mu      sync.Mutex // the rest
	request uint32     // the number of what was asked for last; 0: nothing was
	rest    []byte     // what was received and not read yet; it begins at next
	next    int64      // where the next byte of the machine lies
	// broken is why there are no more bytes. Then the upload is over, for whatever reason the store has.
	broken error

	has atomic.Int64 // next, for beats
}

// Size implements store.Source.
func (in *incoming) Size() int64 { return in.size }

// ReadAt implements store.Source.
func (in *incoming) ReadAt(p []byte, off int64) (n int, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.broken != nil {
		return 0, in.broken
	}
	if off < 0 || off >= in.size {
		return 0, io.EOF
	}
	if in.request == 0 || off != in.next {
		in.request++
		in.rest, in.next = nil, off
		in.has.Store(off)
		if err = in.ask(in.request, off); err != nil {
			return 0, in.give(err)
		}
	}
	for n < len(p) && in.next < in.size {
		if len(in.rest) == 0 {
			if err = in.more(); err != nil {
				return n, in.give(err)
			}
		}
		k := copy(p[n:], in.rest)
		n, in.rest, in.next = n+k, in.rest[k:], in.next+int64(k)
		in.has.Store(in.next)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// give notes that there are no more bytes. What a machine says wrong is Invalid, the rest is the connection's.
func (in *incoming) give(err error) error {
	if errkind.Of(err) != errkind.Invalid {
		err = errkind.Errorf(errkind.Unavailable, "the upload broke off at byte %d of %d: %w", in.next, in.size, err)
	}
	in.broken = err
	return err
}

// more receives the next bytes. Those for an earlier request were on their way when another place was asked for.
func (in *incoming) more() error {
	in.stall.start()
	defer in.stall.stop()
	for {
		f, err := in.receive()
		if errors.Is(err, io.EOF) {
			return errors.New("the machine has ended it")
		}
		if err != nil {
			return err
		}
		data, at := f.GetData(), f.GetOffset()
		switch {
		case f.GetBegin() != nil, f.GetRequest() > in.request:
			return errkind.Errorf(errkind.Invalid, "a frame that nobody has asked for: upgrade the older side")
		case f.GetRequest() < in.request, len(data) == 0:
		case at != in.next || int64(len(data)) > in.size-at:
			return errkind.Errorf(errkind.Invalid, "%d bytes from %d on were sent where those from %d of %d on were asked for: upgrade "+
				"the older side", len(data), at, in.next, in.size)
		default:
			in.rest = data
			return nil
		}
	}
}

// failed is why there are no more bytes, nil if the machine has sent all that it was asked for.
func (in *incoming) failed() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.broken
}
