package submit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter"
	"sluice.dev/sluice/internal/edge/lines"
	"sluice.dev/sluice/internal/face/cli/session"
)

// mostNamed is how many skipped lines are named where all are counted.
const mostNamed = 5

// finish puts the answers of a completed job together, lists what was skipped, and says so.
func (m *mapping) finish(ctx context.Context, a *session.Session, c session.Client, j *pb.Job, in *mapInput) error {
	outputs, err := outputsOf(ctx, a, c, j.Name)
	if err != nil {
		return err
	}
	skipped, err := gaps(outputs, j.Total, in.unit())
	if err != nil {
		return err
	}
	if int64(len(skipped)) != j.Skipped {
		return errkind.Errorf(errkind.Corrupt, "job %s has skipped %d lines, and %d are not answered: nothing is written", j.Name,
			j.Skipped, len(skipped))
	}
	if j.Total > 0 && j.Skipped == j.Total {
		return &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("each of the %d lines was skipped, so nothing is written; "+
			"`sluice logs %s` has what the command said", j.Total, j.Name)}
	}
	f, err := m.temporary()
	if err != nil {
		return err
	}
	to := &answers{file: f, w: bufio.NewWriterSize(f, 256<<10), header: m.header}
	for _, o := range outputs {
		if err = to.piece(ctx, a, c, j.Name, o); err != nil {
			break
		}
	}
	if err == nil {
		err = to.w.Flush()
	}
	numbers, failed := in.numbers(skipped)
	if err = errors.Join(err, failed); err == nil {
		err = m.put(a, f, numbers)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, remove(f.Name()))
	}
	return m.tell(a, j.Name, j.Total, numbers)
}

// temporary is a file for the answers until all are there.
func (m *mapping) temporary() (*os.File, error) {
	if m.printed() {
		return os.CreateTemp("", "sluice-map-*")
	}
	return os.CreateTemp(filepath.Dir(m.output), "."+filepath.Base(m.output)+".*")
}

// put has the answers in f, which are whole, where they are to be, and the numbers of skipped lines beside them.
func (m *mapping) put(a *session.Session, f *os.File, skipped []int64) error {
	if m.printed() {
		_, err := f.Seek(0, io.SeekStart)
		if err == nil {
			_, err = io.Copy(a.Out, f)
		}
		return errors.Join(err, os.Remove(f.Name()))
	}
	err := errors.Join(f.Chmod(0o666&^os.FileMode(a.Umask().Mask())), f.Sync())
	if err == nil {
		err = m.list(skipped)
	}
	if err == nil {
		err = os.Rename(f.Name(), m.output)
	}
	return err
}

// remove removes a file that may be gone.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// outputsOf are the committed ranges of a job with what they left, in order.
func outputsOf(ctx context.Context, a *session.Session, c session.Client, name string) (list []*pb.Output, err error) {
	err = a.Patiently(ctx, true, func() error {
		resp, failed := c.ListOutputs(ctx, connect.NewRequest(&pb.ListOutputsRequest{Name: name}))
		if failed == nil {
			list = resp.Msg.Outputs
		}
		return failed
	})
	slices.SortFunc(list, func(x, y *pb.Output) int { return cmp.Compare(x.Range.GetFrom(), y.Range.GetFrom()) })
	return list, err
}

// gaps are the units that no output has; an error says that two have one, in people's word for a unit.
func gaps(outputs []*pb.Output, total int64, unit string) (units []int64, err error) {
	next := int64(0)
	for _, o := range outputs {
		if o.Lost != "" {
			return nil, errkind.Errorf(errkind.Corrupt, "the answers to %ss %d to %d can't be had: %s", unit,
				o.Range.GetFrom()+1, o.Range.GetTo(), o.Lost)
		}
		if o.Range.GetFrom() < next {
			return nil, errkind.Errorf(errkind.Corrupt, "%s %d is answered twice: nothing is written", unit, o.Range.GetFrom()+1)
		}
		for ; next < o.Range.GetFrom(); next++ {
			units = append(units, next)
		}
		next = o.Range.GetTo()
	}
	for ; next < total; next++ {
		units = append(units, next)
	}
	return units, nil
}

// answers takes what pieces have written, and keeps of each as many whole lines as count. What a piece was writing when it ended may lie
// behind these.
type answers struct {
	file *os.File
	w    *bufio.Writer
	// header: each piece begins with one. first is that of the first piece, which is kept, and this that of the piece being read.
	header      bool
	first, this []byte
	// heading: the header is not over yet. taking: what comes is of the answers, of which left lines count still.
	heading, taking bool
	left            int64
}

// piece appends the answers of one committed range.
func (s *answers) piece(ctx context.Context, a *session.Session, c session.Client, name string, o *pb.Output) error {
	if err := s.w.Flush(); err != nil {
		return err
	}
	begin, err := s.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	return a.Patiently(ctx, true, func() error {
		if err := s.back(begin); err != nil {
			return err
		}
		s.begin(o.Range.GetTo() - o.Range.GetFrom())
		stream, err := c.ReadOutput(ctx, connect.NewRequest(&pb.ReadOutputRequest{Name: name, Subjob: o.Subjob}))
		if err != nil {
			return a.Explain(err)
		}
		for stream.Receive() {
			msg := stream.Msg()
			if msg.Path != "" {
				s.taking = msg.Path == adapter.Answers
			}
			if _, err := s.Write(msg.Data); err != nil {
				return errors.Join(err, stream.Close())
			}
		}
		if err := errors.Join(stream.Err(), stream.Close()); err != nil {
			return a.Explain(err)
		}
		if s.left > 0 {
			return errkind.Errorf(errkind.Corrupt, "subjob %s has %d answers fewer than the %d lines it is committed for: nothing is "+
				"written", o.Subjob, s.left, o.Range.GetTo()-o.Range.GetFrom())
		}
		return nil
	})
}

// begin awaits the lines of a piece.
func (s *answers) begin(lines int64) {
	s.left, s.heading, s.taking, s.this = lines, s.header, false, nil
}

// back drops what a piece has written so far.
func (s *answers) back(to int64) error {
	s.w.Reset(s.file)
	if err := s.file.Truncate(to); err != nil {
		return err
	}
	_, err := s.file.Seek(to, io.SeekStart)
	if to == 0 {
		s.first = nil
	}
	return err
}

// Write takes the next bytes of a file.
func (s *answers) Write(p []byte) (int, error) {
	n := len(p)
	if !s.taking {
		return n, nil
	}
	if s.heading {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 {
			s.this = append(s.this, p...)
			return n, nil
		}
		s.this, p, s.heading = append(s.this, p[:end]...), p[end:], false
		switch {
		case s.first == nil:
			s.first = s.this
			if _, err := s.w.Write(s.this); err != nil {
				return n, err
			}
		case !bytes.Equal(s.first, s.this):
			return n, errkind.Errorf(errkind.Corrupt, "the pieces have other headers: %q and %q; is the first line of each one? "+
				"(--answers-header)", s.first, s.this)
		}
	}
	for len(p) > 0 && s.left > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 {
			end = len(p)
		} else {
			s.left--
		}
		if _, err := s.w.Write(p[:end]); err != nil {
			return n, err
		}
		p = p[end:]
	}
	return n, nil
}

// numbers are the lines of the input that units are.
func (in *mapInput) numbers(units []int64) ([]int64, error) {
	return lines.Numbers(in.path, in.lines.Format, in.lines.Header, units)
}

// list writes the numbers of skipped lines beside the output, or removes an older list.
func (m *mapping) list(numbers []int64) error {
	path := m.output + skippedEnd
	if len(numbers) == 0 {
		return remove(path)
	}
	var b bytes.Buffer
	for _, n := range numbers {
		fmt.Fprintln(&b, n)
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}

// tell says what was written.
func (m *mapping) tell(a *session.Session, name string, total int64, skipped []int64) error {
	answered := total - int64(len(skipped))
	unit := "lines"
	if answered == 1 {
		unit = "line"
	}
	most, list := mostNamed, m.output+skippedEnd
	if m.printed() {
		most = len(skipped) // there is no list
	}
	var named []string
	for _, n := range skipped[:min(len(skipped), most)] {
		named = append(named, fmt.Sprint(n))
	}
	if len(skipped) > most {
		named = append(named, "...")
	}
	numbers := strings.Join(named, ", ")
	if m.printed() {
		line := fmt.Sprintf("sluice: %d %s answered", answered, unit)
		if len(skipped) > 0 {
			line += fmt.Sprintf("; %d skipped: %s", len(skipped), numbers)
		}
		_, err := fmt.Fprintln(a.Err, line)
		return err
	}
	line := fmt.Sprintf("%d %s answered in %s", answered, unit, m.output)
	if len(skipped) == 0 {
		list = ""
	} else {
		line += fmt.Sprintf("; %d skipped, listed in %s: %s", len(skipped), list, numbers)
	}
	return a.Done(m.output, "written", command.Record{{Key: "job", Value: name}, {Key: "output", Value: m.output},
		{Key: "lines", Value: total}, {Key: "answered", Value: answered}, {Key: "skipped", Value: append([]int64{}, skipped...)},
		{Key: "skippedFile", Value: list}}, line)
}
