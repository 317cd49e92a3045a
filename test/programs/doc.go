// Package programs runs what `sluice init --like NAME` writes with the real programs (make programs): a job in one window, and the same in
// windows of seconds while the daemon, supervisors and the program itself are killed at random moments, and both must have the same result.
// How long jobs and windows are follows from how fast the machine is.
// A program that is not installed is skipped with the reason, and fails with SLUICE_PROGRAMS=require.
//
// All but this file are tests.
package programs
