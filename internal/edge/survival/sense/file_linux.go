package sense

import (
	"bytes"
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// File is one of the kernel's files that is open for good: it says something new with each read. The zero value is none.
type File struct {
	fd   int
	open bool
}

// OpenFile opens one. It uses a plain descriptor: the runtime's poller would wait for ever on a control file that says EAGAIN.
func OpenFile(path string, flags int) (File, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return File{fd: fd, open: err == nil}, err
	}
}

// Is says whether there is one.
func (f *File) Is() bool { return f.open }

// FD is its descriptor.
func (f *File) FD() int { return f.fd }

// Read is what it says now, as far as buf has room.
func (f *File) Read(buf []byte) ([]byte, error) {
	if !f.open {
		return nil, unix.ENOENT
	}
	for {
		n, err := unix.Pread(f.fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		return buf[:max(0, n)], err
	}
}

// Write writes a text to it, whole or not at all: such files know no place to write at.
func (f *File) Write(text []byte) error {
	if !f.open {
		return unix.ENOENT
	}
	for {
		_, err := unix.Write(f.fd, text)
		if err != unix.EINTR {
			return err
		}
	}
}

// Close closes it. It may be called twice.
func (f *File) Close() {
	if f.open {
		_ = unix.Close(f.fd)
		f.open = false
	}
}

// path is room for a path below /proc.
type path struct {
	text [96]byte
	n    int
}

func (p *path) add(text string) {
	p.n += copy(p.text[p.n:len(p.text)-1], text)
}

func (p *path) number(v int) {
	var digits [20]byte
	p.n += copy(p.text[p.n:len(p.text)-1], Digits(&digits, int64(v)))
}

// open opens what is there. What unix.Open takes, a string, would have to be copied.
func (p *path) open(flags int) (fd int, err error) {
	p.text[p.n] = 0
	for {
		// AT_FDCWD is -100
		r, _, errno := unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&p.text[0])), uintptr(flags|unix.O_CLOEXEC), 0,
			0, 0)
		switch errno {
		case 0:
			return int(r), nil
		case unix.EINTR:
		default:
			return -1, errno
		}
	}
}

// read reads the beginning of the file, as far as buf has room.
func (p *path) read(buf []byte) ([]byte, error) {
	fd, err := p.open(unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	n, err := unix.Read(fd, buf)
	_ = unix.Close(fd)
	return buf[:max(0, n)], err
}

// Field is the number behind a name at the beginning of a line ("VmRSS:   12 kB", "swap 4096"); false: there is none.
func Field(text []byte, name string) (int64, bool) {
	line, found := behind(text, name)
	if !found {
		return 0, false
	}
	return Number(line)
}

// behind is what is behind a name at the beginning of a line; false: no line begins so, or none has more than that.
func behind(text []byte, name string) ([]byte, bool) {
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if len(line) > len(name) && string(line[:len(name)]) == name {
			return line[len(name):], true
		}
	}
	return nil, false
}

// Number is the first number of a text behind blanks; false: there is none.
func Number(text []byte) (v int64, ok bool) {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return v, ok
		}
		if v > (1<<63-1-9)/10 {
			return 1<<63 - 1, true
		}
		v, ok = v*10+int64(c-'0'), true
	}
	return v, ok
}

// Digits writes a number that is not negative, at the end of the room given.
func Digits(room *[20]byte, v int64) []byte {
	i := len(room)
	for {
		i--
		room[i] = byte('0' + v%10)
		if v /= 10; v == 0 {
			return room[i:]
		}
	}
}
