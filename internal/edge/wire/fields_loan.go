package wire

import (
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

func lenderListFields(c *coder.Coder, l *protocol.LenderList) {
	coder.Unsigned(c, 1, &l.Seq)
	coder.Texts(c, 2, &l.Without)
	coder.List(c, 3, &l.Zones, lenderFields)
}

func lenderFields(c *coder.Coder, l *protocol.Lender) {
	coder.Text(c, 1, &l.Zone)
	coder.Signed(c, 2, &l.Slices)
}

func loanFields(c *coder.Coder, l *protocol.Loan) {
	coder.Unsigned(c, 1, &l.Seq)
	coder.Signed(c, 2, &l.Slices)
	coder.Boolean(c, 3, &l.Taken)
	coder.Signed(c, 4, &l.Length)
	coder.Instant(c, 5, &l.NotBefore)
	coder.Boolean(c, 6, &l.Keep)
	coder.Pointer(c, 7, &l.Spec, specFields)
	coder.Instant(c, 8, &l.Submitted)
	coder.Pointer(c, 9, &l.Learned, learnedFields)
	coder.Texts(c, 10, &l.Avoids)
}

func lendingFields(c *coder.Coder, l *protocol.Lending) {
	coder.Unsigned(c, 1, &l.Seq)
	coder.Signed(c, 2, &l.Could)
	coder.Instant(c, 3, &l.Start)
	coder.Instant(c, 4, &l.End)
	coder.Signed(c, 5, &l.Speed)
	coder.Boolean(c, 6, &l.Kept)
	coder.Instant(c, 7, &l.Earliest)
	coder.List(c, 8, &l.Slices, lentSliceFields)
	coder.Text(c, 9, &l.Why)
}

func lentSliceFields(c *coder.Coder, s *protocol.LentSlice) {
	coder.Text(c, 1, &s.ID)
	coder.Text(c, 2, &s.Node)
	coder.Vector(c, 3, &s.Capacity)
}
