package adapter

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/contract"
)

// yield is the exit status of a piece that gives the rest back.
const yield = shim.YieldCode

// unready says why, and is the status for it.
func unready(err error) int {
	fmt.Fprintln(os.Stderr, "sluice:", err)
	return Unready
}

// piece is the subjob's part of its job, by the contract's variables.
type piece struct {
	from, to         int64
	output, progress string
}

func pieceOf(getenv func(string) string) (p piece, err error) {
	number := func(name string) int64 {
		n, failed := strconv.ParseInt(getenv(name), 10, 64)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s is %q; want a number", name, getenv(name)))
		}
		return n
	}
	p = piece{from: number("SLUICE_FROM"), to: number("SLUICE_TO"), output: getenv("SLUICE_OUTPUT_DIR"),
		progress: getenv("SLUICE_PROGRESS_FILE")}
	if p.output == "" || p.progress == "" {
		err = errors.Join(err, errors.New("SLUICE_OUTPUT_DIR or SLUICE_PROGRESS_FILE is not set"))
	}
	return p, err
}

// report says how many units are done, and for how long the command has gone on since all were.
func (p *piece) report(done int64, idle time.Duration) error {
	return contract.Report(p.progress, shim.Progress{Progress: p.from + done, Idle: idle})
}
