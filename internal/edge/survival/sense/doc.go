// Package sense reads what the kernel says of memory and of processes, for the kinds of survival: again and again, without allocating.
package sense
