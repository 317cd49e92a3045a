package home

import (
	"sluice.dev/sluice/internal/core/home/settle"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// A job that has left to the archive (docs/adr/0022-archive.md) is answered for from the record that the driver finds there and hands on
// with the message; another life of it takes the record back.

// recalls is the archived job that a message is about, if it may be about one.
func (v *lives) recalls(m *protocol.Message) (name job.ID, ok bool) {
	switch m.Kind {
	case protocol.Adopt, protocol.Forget, protocol.Result:
		return m.Job, v.book.Job(m.Job) == nil
	}
	return "", false
}

// recalled is the archived record of the job that a message is about; nil if the job is here, if there is none, or if it was
// forgotten and is on its way out.
func (v *lives) recalled(in *protocol.Message) *Job {
	r := protocol.Kept(in.Filed)
	if r == nil || v.book.Job(in.Job) != nil {
		return nil
	}
	j := v.book.Outsider(r)
	if j.Generation <= v.book.Dropped(j.ID) {
		return nil
	}
	return j
}

// answerArchived takes a message about an archived job in. It is false where the message is to be taken in as any other: it is not
// about one, or the job was taken back for its next life, or made way for another one of its name.
func (v *lives) answerArchived(in *protocol.Message, out *protocol.Out) bool {
	j := v.recalled(in)
	if j == nil {
		return false
	}
	dropped := protocol.Fact{Kind: protocol.HomeDropped, Job: j.ID, Generation: j.Generation,
		Body: &protocol.HomeDrop{Attained: j.History().Attained(), Queue: j.Queue().Name}}
	switch of := in.Generation.Number(); in.Kind {
	case protocol.Adopt:
		a := in.Body.(*protocol.Adoption)
		switch record := *protocol.Kept(in.Filed); {
		case of == j.Generation && j.Submitted < a.At: // as admits has it
			dropped.Generation = 0
			v.book.Fact(out, dropped)
			return false
		case a.Since.Number() > j.Generation:
			v.book.Fact(out, dropped)
			return false
		case a.Record != nil && j.Epoch < in.Epoch:
			return false // what a home surrenders is newer than what it, or one before it, has filed
		case in.Epoch < j.Epoch: // it was long under way
		case of > j.Generation && in.Epoch > j.Epoch: // filed by a home that has left: its queues' standing is gone with it
			record.Epoch = in.Epoch
			v.book.Fact(out, protocol.Fact{Kind: protocol.HomeKept, Job: j.ID, Body: &protocol.Keeping{Record: &record}})
			v.learnQueue(a.Queue, out)
			return false
		case of > j.Generation:
			v.book.Fact(out, protocol.Fact{Kind: protocol.HomeKept, Job: j.ID, Body: &protocol.Keeping{Record: protocol.Kept(in.Filed),
				Recalled: true}})
			return false
		case present(j, in):
			v.adopted(in, j, out)
		}
	case protocol.Forget:
		if j.Epoch == in.Epoch && j.Generation <= of {
			v.book.Fact(out, dropped)
		}
		v.forgotten(in, out)
	case protocol.Result:
		counts := &protocol.Acknowledgement{}
		if j.Epoch == in.Epoch {
			counts.Range = settle.Answered(j, in.Token)
		}
		v.send(out, protocol.Message{Kind: protocol.ResultAck, To: in.From, Token: in.Token, Job: in.Job, Body: counts})
	default:
		return false
	}
	return true
}
