package hostwork

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// Turns are gaps and stays one after another, each of a drawn length.
type Turns struct {
	Gap, Stay Length
	// Notice is how long ahead a stay is announced. A gap is at least as long.
	Notice time.Duration
	// Untold: the host does not say when it gives a slice back.
	Untold bool
	Until  quantity.Instant
}

// Length is a distribution of lengths of time.
type Length interface {
	Draw(s *prng.Stream) time.Duration
}

// Drawn is what these turns make of one slice up to an instant, the stay included that reaches across it. It begins with a gap.
func Drawn(draw *prng.Stream, t Turns) (out []Stay) {
	at := quantity.Instant(0)
	for {
		from := at.Add(max(t.Notice, t.Gap.Draw(draw)))
		if from >= t.Until {
			return out
		}
		to := from.Add(max(1, t.Stay.Draw(draw)))
		told := Word{At: from.Add(-t.Notice), From: from, To: to}
		if t.Untold {
			told.To = quantity.Never
		}
		out = append(out, Stay{From: from, To: to, Words: []Word{told}, Source: "host"})
		at = to
	}
}
