// Command program is what the images of test/kube/machine run: as `pause` what holds a Pod's namespaces, else a subjob's program in one of
// several ways.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

func main() {
	way := "pause"
	if len(os.Args) > 1 {
		way = os.Args[1]
	}
	switch way {
	case "pause": // until it is told to end; the containers' orphans are theirs
		wait(syscall.SIGTERM, syscall.SIGINT)
	case "true":
	case "fail":
		fmt.Fprintln(os.Stderr, "trying")
		fmt.Fprintln(os.Stderr, "it broke")
		os.Exit(3)
	case "count": // writes a line for each unit, and a pause between them
		each, _ := time.ParseDuration(argument(2))
		for i := number("SLUICE_FROM"); i < number("SLUICE_TO"); i++ {
			time.Sleep(each)
			write("unit " + strconv.FormatInt(i, 10))
			progress(i + 1)
		}
	case "polite": // does five units, and gives back when it is told
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		progress(5)
		<-told
		write("told")
		os.Exit(85)
	case "stubborn": // does five units, and heeds nobody
		signal.Ignore(syscall.SIGTERM)
		progress(5)
		for {
			time.Sleep(time.Hour)
		}
	case "eat": // takes memory, MiB by MiB, until it is not given any
		progress(5)
		var all [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			all = append(all, b)
			if len(all)%16 == 0 {
				fmt.Println(len(all), "MiB")
			}
		}
	case "env": // writes what a variable of its environment is
		write(os.Getenv(argument(2)))
		progress(number("SLUICE_TO"))
	case "fill": // writes so many MiB, and waits
		progress(5)
		mib, _ := strconv.Atoi(argument(2))
		if err := os.WriteFile(filepath.Join(os.Getenv("SLUICE_OUTPUT_DIR"), "much"), make([]byte, mib<<20), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		wait(syscall.SIGTERM)
	default:
		fmt.Fprintf(os.Stderr, "there is no way %q\n", way)
		os.Exit(2)
	}
}

func argument(i int) string {
	if len(os.Args) > i {
		return os.Args[i]
	}
	return ""
}

func wait(signals ...os.Signal) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, signals...)
	<-told
}

func number(name string) int64 {
	n, _ := strconv.ParseInt(os.Getenv(name), 10, 64)
	return n
}

// write appends a line to the output, and shows it.
func write(line string) {
	fmt.Println(line)
	f, err := os.OpenFile(filepath.Join(os.Getenv("SLUICE_OUTPUT_DIR"), "out"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		_ = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// progress says that work up to n is complete.
func progress(n int64) {
	path := os.Getenv("SLUICE_PROGRESS_FILE")
	err := os.WriteFile(path+".new", fmt.Appendf(nil, `{"progress": %d}`, n), 0o644)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
