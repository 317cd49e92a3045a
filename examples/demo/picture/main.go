// Command picture compares what slices did under several daemons: it fetches histories over the API, keeps them as files,
// and draws them one below the other with one scale. It is a part of `make demo`, and an example of a program that uses
// the API's plain JSON.
//
//	picture fetch ADDR > atoms.json
//	picture draw OUT.svg "Atoms=atoms.json" "Blocks=blocks.json"
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
	"sluice.dev/sluice/internal/face/report"
)

// limit of a history, in bytes.
const limit = 64 << 20

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "fetch":
		return fetch(args[1], out)
	case len(args) >= 3 && args[0] == "draw":
		return draw(args[1], args[2:], out)
	}
	return errors.New("want: fetch ADDR, or draw OUT.svg and one TITLE=FILE for each panel")
}

// fetch copies a daemon's history as JSON.
func fetch(addr string, out io.Writer) error {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Post("http://"+addr+"/sluice.v1alpha1.SluiceService/History", "application/json", strings.NewReader("{}"))
	if err != nil {
		return fmt.Errorf("history of %s: %w", addr, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return fmt.Errorf("history of %s: %w", addr, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("history of %s: %s: %s", addr, resp.Status, bytes.TrimSpace(body))
	}
	_, err = out.Write(body)
	return err
}

// draw writes the picture to a file, and one of characters to out.
func draw(name string, files []string, out io.Writer) error {
	var panels []report.Panel
	for _, f := range files {
		title, file, ok := strings.Cut(f, "=")
		if !ok {
			return fmt.Errorf("%q: want TITLE=FILE", f)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var m pb.HistoryResponse
		if err = protojson.Unmarshal(data, &m); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		h, err := report.FromWire(&m)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		panels = append(panels, report.Panel{Title: title, History: report.Trim(h)})
	}
	var svg bytes.Buffer
	if err := report.SVG(&svg, panels); err != nil {
		return err
	}
	if err := os.WriteFile(name, svg.Bytes(), 0o600); err != nil {
		return err
	}
	width, color := terminal()
	return report.Terminal(out, panels, width, color)
}

// terminal is how wide the picture may be, and whether colors are seen.
func terminal() (width int, color bool) {
	width, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil {
		width = 110
	}
	info, err := os.Stdout.Stat()
	return width, err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""
}
