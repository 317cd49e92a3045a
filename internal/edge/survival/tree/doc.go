// Package tree is the kind of survival that needs nothing but signals: a subjob's processes are found as their supervisor finds them, by
// parent, and are stopped (SIGSTOP) and continued. Their memory is the sum of what each has, and is not moved.
package tree
