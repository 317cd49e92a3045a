// Package forecast bounds what a run will use and how long it will take from earlier runs, with guarantees that need no model of either
// (adr 0015). All numbers are integers: theta, the accepted chance of passing a bound, and all ratios are in parts per million.
//
// There are three guarantees, each for another kind of history.
//
// Exchangeable runs (jobs of one template, or of one queue, in an order without information): Rank, Sample and Runs. The k-th smallest of n
// observations, k = ceil((n+1)(1-theta)), is passed by the next one with a chance of at most theta, whatever the distribution. Where k > n
// no finite bound has that guarantee, and none is given.
//
// Drifting series, judged by the share of a window that is to be covered: Level (adaptive conformal inference, Gibbs and Candes, NeurIPS
// 2021). Series where only the last miss matters: Tracker (the quantile tracker of conformal PID control, Angelopoulos, Candes and
// Tibshirani, NeurIPS 2023). Both come to a share of misses of theta in the long run on any sequence, even one that an adversary makes up;
// their comments have the proof.
//
// Recent promises nothing and is the default for a series: it is the rule that did best where every choice was made by earlier hours alone.
//
// A first run has no history. Rule names what bounds it, and which guarantee that is: its template's lessons; else its owner's declaration,
// raised to what its template was seen to use; else its queue's lessons; else the whole slice.
package forecast
