package tree

import "testing"

func TestMappedIn(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 08:01 1234                               /bin/x
Size:               1024 kB
Pss:                 500 kB
SwapPss:               0 kB
VmFlags: rd ex mr mw me
7f0000000000-7f0000100000 rw-s 00000000 00:2f 12                         /dev/shm/a - b
Rss:                1024 kB
Pss:                 512 kB
Pss_Dirty:           512 kB
SwapPss:              16 kB
VmFlags: rd wr sh mr mw
7f0000200000-7f0000300000 rw-p 00000000 00:00 0 
Pss:                  64 kB
7f0000400000-7f0000500000 rw-s 00000000 00:30 7                          /tmp/c (deleted)
Pss:                   8 kB
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
Pss:                  12 kB
`
	s := Stores{devices: map[string]bool{"00:2f": true, "00:30": true}}
	if got, want := s.mappedIn([]byte(smaps)), int64((512+16+8)<<10); got != want {
		t.Errorf("%d bytes are mapped, want %d", got, want)
	}
	if none := (&Stores{}).mappedIn([]byte(smaps)); none != 0 {
		t.Errorf("%d bytes of no stores", none)
	}
}
