// Package foreign handles directory trees that belong to somebody else's program, which may be changing them at this very
// moment: the output, checkpoint, progress and work directories of subjobs. The daemon and its supervisors are often root,
// and whoever follows a path into such a tree can be sent anywhere by a link that was put there a moment ago.
//
// So no path into a tree is ever resolved by the kernel in one go, and nothing is done by name that could be done to a
// descriptor: every directory is opened by its name in the one above and never through a link, what was opened is asked
// what it is, and only then is it read or changed. A tree may be as deep and as wide as its owner likes: the descriptors
// and the stack used do not grow with it.
//
// The path of the tree's root is trusted: it must lie in directories that only the daemon's user can write. Nothing
// privileged may handle such trees in another way; internal/archtest sees to it. The package must not know what the trees
// are for.
package foreign
