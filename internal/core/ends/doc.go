// Package ends predicts when a gap on a slice ends that somebody else gives and takes: a scheduler that owns the slice, or a
// process that is not ours. It learns how long such gaps last from those that were (Curve: Kaplan and Meier's product-limit
// estimate, with the gaps that have not ended yet as what they are, censored), by what was there before them, from the special
// to the general (Keys), and given how long the present one has lasted already. Where an end is only claimed it learns the same
// way how much of the claimed time came true.
//
// How sure a prediction has to be follows from how often earlier ones failed (Guard): at most a share theta of them does in the
// long run, whatever gaps do, and so few of the subjobs that keep to them are cut short.
//
// All of it is integers, of bounded memory, and soft: who forgets it predicts nothing until it has seen enough again.
package ends
