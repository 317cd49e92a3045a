package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/store"
	stores "sluice.dev/sluice/internal/edge/store/all"
	trees "sluice.dev/sluice/internal/edge/store/tree"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// pinned is the folder of the names that people give.
const pinned = "pinned"

// storeFlags say which store is meant.
type storeFlags struct {
	spec, config, data string
}

// StoreCmd is the command store.
func StoreCmd(a *session.Session) *cobra.Command {
	var kinds []string
	for _, k := range stores.Kinds() {
		kinds = append(kinds, "  "+k.Name+": "+k.Help)
	}
	c := &cobra.Command{
		Use: "store", Short: "Put, get and list what lies in a store: work directories, outputs, checkpoints",
		Long: `Work with a store: whole objects under the digests of their bytes, and names that say
which of them are needed. What no name needs is removed an hour later at the earliest.

These commands open the store itself and need no daemon. Which one: --store, else
SLUICE_STORE, else key store in the daemon's file (--config), else that of the data
directory (--data). Kinds of stores:

` + strings.Join(kinds, "\n"),
		Example: `  sluice store put ./work --store path:/mnt/shared/sluice
  sluice store ls
  sluice store get 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae ./back`,
	}
	c.AddCommand(storePutCmd(a), storeGetCmd(a), storeListCmd(a), storeRemoveCmd(a), storeCollectCmd(a), storeInitCmd(a))
	return c
}

func (f *storeFlags) add(a *session.Session, c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&f.spec, "store", a.Getenv("SLUICE_STORE"), "the store (SLUICE_STORE), such as path:/mnt/shared/sluice")
	c.Flags().StringVar(&f.config, "config", "", "the daemon's file, whose key store names it")
	c.Flags().StringVar(&f.data, "data", DefaultData(a.Getenv),
		"the daemon's data directory, whose own store it is where nothing else is said")
	return c
}

// where is the spec of the store that is meant.
func (f *storeFlags) where() (string, error) {
	if f.spec != "" {
		return f.spec, nil
	}
	if f.config != "" {
		d, err := ReadDaemon(f.config)
		if err != nil {
			return "", err
		}
		if d.Store != "" {
			return d.Store, nil
		}
	}
	dir, err := filepath.Abs(filepath.Join(f.data, "store"))
	if err != nil {
		return "", err
	}
	if _, err = os.Stat(dir); err != nil { // making it would make a data directory of nothing
		return "", errkind.Errorf(errkind.NotFound, "no store: there is none in %s: start the daemon once, or name one with --store",
			f.data)
	}
	return "local:" + dir, nil
}

// with opens the store, does something with it and closes it.
func (f *storeFlags) with(ctx context.Context, do func(store.Store) error) error {
	spec, err := f.where()
	if err != nil {
		return err
	}
	s, err := stores.Open(ctx, spec)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

func storePutCmd(a *session.Session) *cobra.Command {
	var f storeFlags
	var name string
	c := &cobra.Command{
		Use: "put PATH", Short: "Store a directory or a file, and print its digest",
		Long: `Store a directory or a file, and print its digest. A directory becomes one object:
files with their rights and times of change, directories and links that stay inside,
without owners, so that a directory in which no file was touched has the same digest.
What leads out of it is left out and named. A job starts in it with workdir: store://DIGEST.

It is named pinned/DIGEST, or as --name says, and stays until "sluice store rm" takes
the name away. The same command goes on with an upload that broke off.`,
		Example: "  sluice store put ./work\n  sluice store put model.bin --name pinned/model --store " +
			"s3://bucket/sluice?endpoint=https://minio:9000\n  digest=$(sluice store put ./work -o name)",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), func(s store.Store) error {
				o, files, err := put(cmd.Context(), a, s, args[0])
				if err != nil {
					return fmt.Errorf("put %s: %w", args[0], err)
				}
				if name == "" {
					name = pinned + "/" + string(o.Digest)
				}
				if err = store.Name(cmd.Context(), s, name, store.Refs{"data": o.Digest}); err != nil {
					return err
				}
				r := command.Record{{Key: "digest", Value: string(o.Digest)}, {Key: "bytes", Value: o.Size}, {Key: "files", Value: files},
					{Key: "name", Value: name}, {Key: "store", Value: s.String()}}
				return a.Done(string(o.Digest), "stored", r, fmt.Sprintf("%s%s  %s, named %s", store.Scheme, o.Digest, command.Size(o.Size),
					name))
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "the name that it stays for (default pinned/DIGEST)")
	return a.Output(f.add(a, c))
}

// put stores a directory or a file, under a digest that is known first, so that it goes on where an earlier attempt ended.
func put(ctx context.Context, a *session.Session, s store.Store, path string) (o store.Object, files int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return o, 0, err
	}
	var src store.Source
	if info.IsDir() {
		t, failed := trees.Scan(path)
		if failed != nil {
			return o, 0, failed
		}
		defer func() { err = errors.Join(err, t.Close()) }()
		for _, left := range t.Left {
			fmt.Fprintf(a.Err, "sluice: %s: %s\n", path, left)
		}
		src, files = t, t.Files
	} else {
		f, failed := os.Open(path)
		if failed != nil {
			return o, 0, failed
		}
		defer func() { _ = f.Close() }()
		src, files = io.NewSectionReader(f, 0, info.Size()), 1
	}
	sum, err := store.Sum(ctx, src)
	if err != nil {
		return o, 0, err
	}
	o, err = s.Put(ctx, sum, src)
	return o, files, err
}

func storeGetCmd(a *session.Session) *cobra.Command {
	var f storeFlags
	var raw bool
	var role string
	c := &cobra.Command{
		Use: "get DIGEST|NAME PATH", Short: "Get an object by its digest, or by a name that needs it",
		Long: `Get an object, checked against its digest: a directory is unpacked into PATH, which must
not be there yet. With --raw the object's bytes are written, to stdout if PATH is -.
Of a name that needs several objects --role says which. Nothing is left at PATH if
anything goes wrong.`,
		Example: "  sluice store get store://2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae ./work\n  sluice store " +
			"get jobs/1a2b/train/3-17 ./checkpoint --role checkpoint\n  sluice store get pinned/model - --raw > model.bin",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), func(s store.Store) error {
				d, err := digestOf(cmd.Context(), s, args[0], role)
				if err != nil {
					return err
				}
				r, err := s.Open(cmd.Context(), d)
				if err != nil {
					return err
				}
				defer func() { _ = r.Close() }()
				if raw {
					return getRaw(a, r, args[1])
				}
				files, size, err := trees.Restore(r, args[1], trees.Limits{Bytes: 1 << 50, Entries: trees.MaxEntries})
				if errkind.Of(err) == errkind.Invalid {
					return fmt.Errorf("%s is no directory: %w: get it with --raw", d, err)
				}
				if err != nil {
					return err
				}
				return a.Done(args[1], "got", command.Record{{Key: "digest", Value: string(d)}, {Key: "path", Value: args[1]},
					{Key: "files", Value: files}, {Key: "bytes", Value: size}},
					fmt.Sprintf("%s: %d files, %s", args[1], files, command.Size(size)))
			})
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "write the object's bytes, whatever they are")
	c.Flags().StringVar(&role, "role", "", "which object of a name, such as output")
	return a.Output(f.add(a, c))
}

// digestOf is what somebody means who gives a digest or a name.
func digestOf(ctx context.Context, s store.Store, text, role string) (store.Digest, error) {
	if d, err := store.ParseDigest(text); err == nil {
		return d, nil
	}
	n, err := s.ReadName(ctx, text)
	if err != nil {
		return "", fmt.Errorf("%q is no digest, and as a name: %w", text, err)
	}
	roles := slices.Sorted(maps.Keys(n.Refs))
	if role == "" && len(roles) == 1 {
		role = roles[0]
	}
	d, ok := n.Refs[role]
	if !ok {
		return "", command.Usage("%s needs %s: say which with --role", text, strings.Join(roles, " and "))
	}
	return d, nil
}

func getRaw(a *session.Session, r io.Reader, path string) error {
	if path == "-" {
		_, err := io.Copy(a.RawOut, r)
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return errkind.Errorf(errkind.Exists, "%s is there already: name a file that is not", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".sluice-get-*")
	if err != nil {
		return err
	}
	n, err := io.Copy(f, r)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return a.Done(path, "got", command.Record{{Key: "path", Value: path}, {Key: "bytes", Value: n}},
		fmt.Sprintf("%s: %s", path, command.Size(n)))
}

// keptObject is one line of `sluice store ls`: an object, with one of the names that need it.
type keptObject struct {
	store.Object
	names []string
}

func storeListCmd(a *session.Session) *cobra.Command {
	var f storeFlags
	c := &cobra.Command{
		Use: "ls [FOLDER]", Short: "List the objects, and the names that need them",
		Long: `List the objects with the names that need them, or those that names of a folder need. An
object without a name is garbage: it goes an hour after it was put or renewed, with the
next collection.`,
		Example: "  sluice store ls\n  sluice store ls jobs -o wide\n  sluice store ls -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := strings.Join(args, "")
			return f.with(cmd.Context(), func(s store.Store) error {
				list, err := contents(cmd.Context(), s, folder)
				if err != nil {
					return err
				}
				return command.Show(a.App, list, storeColumns(a), func(l keptObject) string { return string(l.Digest) },
					"nothing is stored")
			})
		},
	}
	return a.Output(f.add(a, c))
}

// contents are the objects of a store, the oldest first, with who needs them.
func contents(ctx context.Context, s store.Store, folder string) (list []keptObject, err error) {
	needed := map[store.Digest][]string{}
	err = s.Names(ctx, folder, func(n store.Named) error {
		for role, d := range n.Refs {
			needed[d] = append(needed[d], n.Name+" ("+role+")")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = s.List(ctx, func(o store.Object) error {
		if names := needed[o.Digest]; folder == "" || len(names) > 0 {
			slices.Sort(names)
			list = append(list, keptObject{o, names})
		}
		return nil
	})
	slices.SortFunc(list, func(a, b keptObject) int {
		if c := a.Changed.Compare(b.Changed); c != 0 {
			return c
		}
		return strings.Compare(string(a.Digest), string(b.Digest))
	})
	return list, err
}

func storeColumns(a *session.Session) []command.Column[keptObject] {
	return []command.Column[keptObject]{
		{Key: "digest", Head: "DIGEST", Value: func(l keptObject) any { return string(l.Digest) }},
		{Key: "bytes", Head: "SIZE", Value: func(l keptObject) any { return l.Size },
			Text: func(l keptObject) string { return command.Size(l.Size) }},
		{Key: "changed", Head: "AGE", Value: func(l keptObject) any { return l.Changed.UTC().Format(time.RFC3339) },
			Text: func(l keptObject) string { return command.Short(a.Now().Sub(l.Changed).Truncate(time.Second)) }},
		{Key: "names", Head: "NEEDED BY", Value: func(l keptObject) any { return append([]string{}, l.names...) },
			Text: func(l keptObject) string {
				switch len(l.names) {
				case 0:
					return "nobody"
				case 1:
					return l.names[0]
				}
				return fmt.Sprintf("%s and %d more", l.names[0], len(l.names)-1)
			}},
	}
}

func storeRemoveCmd(a *session.Session) *cobra.Command {
	var f storeFlags
	var object bool
	c := &cobra.Command{
		Use: "rm NAME|DIGEST", Aliases: []string{"unname"}, Short: "Take a name away, so that what it needs may go",
		Long: `Take a name away, or of a digest the name pinned/DIGEST. The object goes with the next
collection if no other name needs it. Names below jobs and work are a daemon's: it takes
them away itself, and misses them if somebody else does. With --object the object itself
goes, if it is damaged: its names stay, and it can be put again.`,
		Example: "  sluice store rm pinned/model\n  sluice store rm --object " +
			"store://2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\n  sluice store rm " +
			"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), func(s store.Store) error {
				name := args[0]
				if object {
					return removeDamaged(cmd.Context(), a, s, name)
				}
				if d, err := store.ParseDigest(name); err == nil {
					name = pinned + "/" + string(d)
				}
				if _, err := s.ReadName(cmd.Context(), name); err != nil && errkind.Of(err) != errkind.Corrupt {
					return err
				}
				if err := s.Unname(cmd.Context(), name); err != nil {
					return err
				}
				return a.Done(name, "removed", command.Record{{Key: "name", Value: name}},
					name+" removed; `sluice store gc` removes what nobody needs")
			})
		},
	}
	c.Flags().BoolVar(&object, "object", false, "remove an object that is damaged, so that it can be put again")
	return a.Output(f.add(a, c))
}

// removeDamaged removes an object that has not got its digest, unless somebody has put it anew while it was read.
func removeDamaged(ctx context.Context, a *session.Session, s store.Store, text string) error {
	d, err := store.ParseDigest(text)
	if err != nil {
		return err
	}
	o, err := s.Stat(ctx, d)
	if err != nil {
		return err
	}
	r, err := s.Open(ctx, d)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	switch err = errors.Join(err, r.Close()); {
	case err == nil:
		return command.Usage("object %s is whole: take its names away with `sluice store rm NAME`, and it goes when no one needs it", d)
	case errkind.Of(err) != errkind.Corrupt:
		return err
	}
	removed, err := s.Remove(ctx, d, o.Changed.Add(1))
	if err != nil {
		return err
	}
	if !removed {
		return errkind.Errorf(errkind.Conflict, "somebody has put or renewed object %s while it was read: try again", d)
	}
	return a.Done(string(d), "removed", command.Record{{Key: "digest", Value: string(d)}},
		string(d)+" was damaged and is removed; put it again from where it came from")
}

func storeCollectCmd(a *session.Session) *cobra.Command {
	var f storeFlags
	var dry bool
	age := show.Length(store.LeastAge)
	c := &cobra.Command{
		Use: "gc", Short: "Remove what no name needs",
		Long: `Remove the objects that no name needs and that nobody has put or renewed for an hour, and
what uploads have left that nothing was heard of for a day. It is safe beside running
daemons and uploads; daemons do it by themselves, after jobs are forgotten.`,
		Example: "  sluice store gc --dry-run\n  sluice store gc --age 24h --store path:/mnt/shared/sluice",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd.Context(), func(s store.Store) error {
				c, err := store.Collect(cmd.Context(), s, time.Duration(age), dry)
				if err != nil {
					return err
				}
				did := "removed"
				if dry {
					did = "to be removed"
				}
				r := command.Record{{Key: "objects", Value: c.Objects}, {Key: "names", Value: c.Names}, {Key: "removed", Value: c.Removed},
					{Key: "bytes", Value: c.Bytes}, {Key: "uploads", Value: c.Uploads}, {Key: "dryRun", Value: dry}}
				return a.Done(s.String(), did, r, fmt.Sprintf("%d of %d objects %s, %s; %d names; %d uploads given up", c.Removed,
					c.Objects, did, command.Size(c.Bytes), c.Names, c.Uploads))
			})
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only count")
	c.Flags().Var(&age, "age", "how long an object must have been left alone, at least 1h")
	return a.Output(f.add(a, c))
}

func storeInitCmd(a *session.Session) *cobra.Command {
	var f storeFlags
	c := &cobra.Command{
		Use: "init", Short: "Make an empty directory, or a bucket, a store",
		Long: `Make a store where --store says, if there is none. A directory on a shared file system must
be made one by this before it is used: where a mount is missing an empty directory is
left, and what is written there is lost.`,
		Example: "  sluice store init --store path:/mnt/shared/sluice",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.spec == "" {
				return command.Usage("no store is named: give --store, such as --store path:/mnt/shared/sluice")
			}
			s, err := stores.Init(cmd.Context(), f.spec)
			if err != nil {
				return err
			}
			return errors.Join(a.Done(s.String(), "ready", command.Record{{Key: "store", Value: s.String()}}, s.String()+" is a store"),
				s.Close())
		},
	}
	return a.Output(f.add(a, c))
}
