// Package ends predicts when a gap on a slice ends that others control: a scheduler that owns the slice, or a process that is not ours. It
// learns how long such gaps last from earlier ones (Curve: Kaplan and Meier's product-limit estimate, with unfinished gaps as censored), by
// the stay before them, from the special to the general (Keys), and given how long the present one has lasted. Where an end is only
// announced it learns the same way how much of the announced time came true.
//
// How sure a prediction has to be follows from how often earlier ones failed (Guard): at most a share theta of them does in the long run,
// whatever gaps do, and so few of the subjobs that keep to them are cut short.
//
// All numbers are integers, memory is bounded, and all state is soft: after a restart nothing is predicted until enough was seen again.
package ends
