// Package explain counts why jobs wait and notes who they lost to, for people: nothing here decides anything, and all of it is soft and
// bounded. It must not know what a job, a slice or a policy is.
package explain
