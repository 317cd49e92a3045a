// Package archtest holds the rules of the house that a compiler does not check: which way packages may depend, what the
// core may not contain, and that tables, documents and sizes stay as ARCHITECTURE.md says. Each rule is a pure function
// from what was read of the tree to a list of violations; the tests run it on planted violations first and then on the
// tree. It knows the folder names and nothing of what the packages do. No concurrency.
package archtest
