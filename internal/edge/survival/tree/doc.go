// Package tree is the kind of survival that needs nothing but signals: a subjob's processes are found as their supervisor finds them, by
// who is below whom, and are stopped (SIGSTOP) and continued. What they have is the sum of what each has, and stays where it is.
package tree
