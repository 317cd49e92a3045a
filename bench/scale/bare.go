package main

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// bareShell does, for half a second, what no shell can do without: it hashes and writes the record of each of 256 jobs, and syncs.
// It says how many jobs a second that is, and so how fast this machine is today.
func (s *settings) bareShell() (perSecond float64, err error) {
	const batch, record = 256, 256
	f, err := os.Create(filepath.Join(s.temp, "bare"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	var digest [32]byte
	buf := make([]byte, batch*record)
	jobs, begin := 0, time.Now()
	for time.Since(begin) < 500*time.Millisecond {
		for i := range batch {
			part := buf[i*record : (i+1)*record]
			copy(part, digest[:])
			digest = sha256.Sum256(part)
		}
		if _, err = f.Write(buf); err == nil {
			err = f.Sync()
		}
		if err != nil {
			return 0, err
		}
		jobs += batch
	}
	return float64(jobs) / time.Since(begin).Seconds(), nil
}
