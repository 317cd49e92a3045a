package bidder

import "slices"

// Kinds lists the strategies; the first is honest.
func Kinds() []Kind { return slices.Clone(kinds) }
