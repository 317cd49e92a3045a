// Package tree makes one object of a directory and a directory of an object: a tar with names in order, contents, the rights of files and
// directories, the files' times of change, and links that stay inside; no owners, so that a tree in which no file was touched always has
// the same digest. Packed (gzip) ones, as `sluice submit` makes them, are read too.
//
// Trees belong to somebody else's program, and so do archives: nothing outside the directory is ever read or written, whatever
// links it holds (os.Root sees to it), and what has no business in a tree is left out when it is read, and refused when it is unpacked.
package tree
