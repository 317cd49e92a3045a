// Package slurm tries Sluice on a real Slurm, which it starts for itself from Debian's packages (make slurm): first the kind of provider
// alone, by Slurm's commands and through slurmrestd, then a filler of a site with accounting, set up by the commands of docs/slurm.md, and
// a head whose machines are all pilots, while Slurm, its nodes, the pilots and the head are struck at random. An oracle of its own asks
// squeue alone how many pilots there are, and reads what jobs have left as test/witness says: every job that was accepted must be complete,
// with each unit in its committed output once, never with more pilots than were allowed, and at the end no pilot, process, folder or token
// is left.
//
// It takes no root. All but this file are tests.
package slurm
