package wire

import "sluice.dev/sluice/internal/core/protocol"

func lenderListFields(c *coder, l *protocol.LenderList) {
	unsigned(c, 1, &l.Seq)
	texts(c, 2, &l.Without)
	list(c, 3, &l.Zones, lenderFields)
}

func lenderFields(c *coder, l *protocol.Lender) {
	text(c, 1, &l.Zone)
	signed(c, 2, &l.Slices)
}

func loanFields(c *coder, l *protocol.Loan) {
	unsigned(c, 1, &l.Seq)
	signed(c, 2, &l.Slices)
	boolean(c, 3, &l.Taken)
	signed(c, 4, &l.Length)
	instant(c, 5, &l.NotBefore)
	boolean(c, 6, &l.Keep)
	pointer(c, 7, &l.Spec, specFields)
	instant(c, 8, &l.Submitted)
	pointer(c, 9, &l.Learned, learnedFields)
	texts(c, 10, &l.Avoids)
}

func lendingFields(c *coder, l *protocol.Lending) {
	unsigned(c, 1, &l.Seq)
	signed(c, 2, &l.Could)
	instant(c, 3, &l.Start)
	instant(c, 4, &l.End)
	signed(c, 5, &l.Speed)
	boolean(c, 6, &l.Kept)
	instant(c, 7, &l.Earliest)
	list(c, 8, &l.Slices, lentSliceFields)
	text(c, 9, &l.Why)
}

func lentSliceFields(c *coder, s *protocol.LentSlice) {
	text(c, 1, &s.ID)
	text(c, 2, &s.Node)
	vector(c, 3, &s.Capacity)
}
