package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const records = 6400

// outcomes of a trial, in the order of the tables.
var outcomes = []string{"refused or reported", "crashed", "bad data handed out as good", "records lost, no word", "nothing lost"}

// child runs one part of a trial in a process of its own, so that a crash is a result.
func child(name, job string) {
	c := byName(strings.Split(name, "@")[0])
	dir := strings.Split(name, "@")[1]
	switch job {
	case "fill": // and leave the files as a kill does
		s, err := c.open(dir)
		for i := 0; i < records && err == nil; i += 64 {
			err = s.append(batchOf(i, 64))
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		os.Exit(0)
	case "scan":
		n, bad := 0, 0
		err := c.scan(dir, func(data []byte) {
			if !bytes.Equal(data, record(n)) {
				bad++
			}
			n++
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		fmt.Println(n, bad)
	case "full":
		fillUp(c, dir)
	}
}

func run(c candidate, dir, job string) (string, int) {
	cmd := exec.Command(os.Args[0], "child", c.name+"@"+dir, job)
	cmd.Env = append(os.Environ(), "GOTRACEBACK=none")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return strings.TrimSpace(string(out)), exit.ExitCode()
	}
	return strings.TrimSpace(string(out)), 0
}

// judge scans dir and says which outcome it is; want is how many records were acknowledged.
func judge(c candidate, dir string, want int) string {
	out, code := run(c, dir, "scan")
	var n, bad int
	switch {
	case code == 3:
		return outcomes[0]
	case code != 0:
		return outcomes[1]
	}
	fmt.Sscan(out, &n, &bad)
	switch {
	case bad > 0:
		return outcomes[2]
	case n < want:
		return outcomes[3]
	}
	return outcomes[4]
}

// prepare fills a directory and returns it.
func prepare(c candidate) (string, error) {
	dir, err := os.MkdirTemp(".", "trial-")
	if err != nil {
		return "", err
	}
	if out, code := run(c, dir, "fill"); code != 0 {
		return dir, fmt.Errorf("%s: fill: %d %s", c.name, code, out)
	}
	if o := judge(c, copyOf(dir), records); o != outcomes[4] {
		return dir, fmt.Errorf("%s: undamaged, and the outcome is %q", c.name, o)
	}
	return dir, nil
}

func copyOf(dir string) string {
	to, err := os.MkdirTemp(".", "trial-")
	if err == nil {
		err = os.CopyFS(to, os.DirFS(dir))
	}
	if err != nil {
		panic(err)
	}
	return to
}

func table(title string, rows map[string]map[string]int) {
	fmt.Printf("| %s | trials | %s |\n|---|---|---|---|---|---|---|\n", title, strings.Join(outcomes, " | "))
	for _, c := range candidates() {
		total := 0
		for _, n := range rows[c.name] {
			total += n
		}
		fmt.Printf("| %s | %d |", c.name, total)
		for _, o := range outcomes {
			fmt.Printf(" %d |", rows[c.name][o])
		}
		fmt.Println()
	}
}

// flips flips one bit somewhere in the bytes that were written (zeros of preallocated files are left alone).
func flips() error {
	rows := map[string]map[string]int{}
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range candidates() {
		rows[c.name] = map[string]int{}
		dir, err := prepare(c)
		if err != nil {
			return err
		}
		for range 120 {
			trial := copyOf(dir)
			flip(trial, random)
			rows[c.name][judge(c, trial, records)]++
			_ = os.RemoveAll(trial)
		}
		_ = os.RemoveAll(dir)
	}
	table("one flipped bit", rows)
	return cleanup()
}

func flip(dir string, random *rand.Rand) {
	var files []string
	var sizes []int
	total := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b, err := os.ReadFile(path)
			if err != nil {
				panic(err)
			}
			if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
				files, sizes, total = append(files, path), append(sizes, n), total+n
			}
		}
		return nil
	})
	at := random.IntN(total)
	for i, n := range sizes {
		if at >= n {
			at -= n
			continue
		}
		b, err := os.ReadFile(files[i])
		if err != nil {
			panic(err)
		}
		b[at] ^= 1 << random.IntN(8)
		if err := os.WriteFile(files[i], b, 0o600); err != nil {
			panic(err)
		}
		return
	}
}

// cuts cuts the newest log at places in its last 40 kB, batch boundaries of the plain file among them: the file ends
// there, or all is zero from there on, as in a file that was made large before it was written.
func cuts() error {
	if err := cutOrClear("the newest log cut within its last 40 kB", func(log string, at, _ int) error {
		return os.Truncate(log, int64(at))
	}); err != nil {
		return err
	}
	fmt.Println()
	return cutOrClear("the newest log zero from there on", func(log string, at, size int) error {
		return errors.Join(os.Truncate(log, int64(at)), os.Truncate(log, int64(size)))
	})
}

func cutOrClear(title string, damage func(log string, at, size int) error) error {
	rows := map[string]map[string]int{}
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range candidates() {
		rows[c.name] = map[string]int{}
		dir, err := prepare(c)
		if err != nil {
			return err
		}
		log, err := newest(c, dir)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		end := len(bytes.TrimRight(b, "\x00"))
		var places []int
		frame := plainHeader + 64*(recordSize+2)
		for i := range 120 {
			if i%4 == 0 && c.log == "log" {
				places = append(places, end-(1+i/4%5)*frame)
			} else {
				places = append(places, end-1-random.IntN(40000))
			}
		}
		slices.Sort(places)
		for _, n := range places {
			trial := copyOf(dir)
			rel, _ := filepath.Rel(dir, log)
			if err := damage(filepath.Join(trial, rel), n, len(b)); err != nil {
				return err
			}
			rows[c.name][judge(c, trial, records)]++
			_ = os.RemoveAll(trial)
		}
		_ = os.RemoveAll(dir)
	}
	table(title, rows)
	return cleanup()
}

// full runs every candidate into a limit on the size of files, lifts it, and looks what it does and what is there.
func full() error {
	fmt.Println("| full disk | while full | after room was made | after a restart |\n|---|---|---|---|")
	for _, c := range candidates() {
		dir, err := os.MkdirTemp(".", "trial-")
		if err != nil {
			return err
		}
		out, code := run(c, dir, "full")
		var acked int
		lines := strings.Split(out, "\n")
		fmt.Sscan(lines[0], &acked)
		while, after := "process ended, exit "+fmt.Sprint(code), "-"
		if len(lines) >= 3 {
			while, after = lines[1], lines[2]
			fmt.Sscan(lines[len(lines)-1], &acked)
		}
		last := judge(c, dir, acked)
		if last == outcomes[0] {
			text, _ := run(c, dir, "scan")
			last += ": " + text
		}
		fmt.Printf("| %s | %s | %s | %d acknowledged: %s |\n", c.name, while, after, acked, last)
	}
	return cleanup()
}

func fillUp(c candidate, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := c.open(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	low := limit
	low.Cur = 2 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
		panic(err)
	}
	n := 0
	for ; err == nil && n < 400_000; n += 64 {
		if err = s.append(batchOf(n, 64)); err != nil {
			break
		}
		if n%6400 == 0 {
			fmt.Fprintln(os.Stderr, n)
		}
	}
	fmt.Println(n)
	for range 3 {
		if err = s.append(batchOf(n, 64)); err == nil {
			n += 64
		}
	}
	fmt.Println("error: " + firstWords(err))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	var again error
	for range 50 {
		if again = s.append(batchOf(n, 64)); again != nil {
			break
		}
		n += 64
	}
	if again != nil {
		fmt.Println("does not go on: " + firstWords(again))
	} else {
		fmt.Println("goes on")
	}
	fmt.Println(n)
	os.Exit(0)
}

func firstWords(err error) string {
	if err == nil {
		return "none"
	}
	s := strings.Split(err.Error(), "\n")[0]
	return s[max(0, len(s)-60):]
}

func cleanup() error {
	names, err := filepath.Glob("trial-*")
	for _, n := range names {
		err = errors.Join(err, os.RemoveAll(n))
	}
	return err
}
