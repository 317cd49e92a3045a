// Package index keeps, for each job and each class of slices, the shortest window that the job can use, and finds the first that can use a
// given one: by the policy, by how long jobs wait, and of those that have waited too long. It must not know how a window is sold.
//
// Read demand.go and job.go for what is kept of a job, estimator.go for what a job makes of a window, examine.go for how an entry is
// made, then index.go, which keeps all entries up to date.
package index
