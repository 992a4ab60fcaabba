// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
	"github.com/modelbox-operator/modelbox-operator/fetch/unpack"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// fetch leaves each complete model in its place on its volume, one after another.
func fetch(ctx context.Context, f flags, getenv func(string) string, log *report.Log, options guard.Options) ([]modeluri.Fetched, error) {
	counter := &report.Counter{}
	defer report.Progress(log, counter, f.progressEvery)()
	f.downloader.Log, f.downloader.Counter = log, counter
	var fetchers []*fetcher
	var works []string
	for _, m := range f.models {
		settings := source.Settings{Argument: m, Getenv: environment(m.EnvPrefix, getenv), Mirrors: f.Mirrors, MaxFiles: f.MaxFiles, Hide: log.Hide}
		// In the directory of this name, a start continues what an earlier one fetched of the same model.
		name := place.WorkName(m.Directory, m.URI+"\x00"+settings.Identity())
		one := &fetcher{Settings: settings, Downloader: f.downloader, maxRatio: f.maxRatio, name: name}
		fetchers, works = append(fetchers, one), append(works, one.name)
	}
	var done []modeluri.Fetched
	for _, one := range fetchers {
		record, err := one.through(ctx, options, works)
		if err != nil {
			return nil, named(one.Name, err)
		}
		done = append(done, modeluri.Fetched{Name: one.Name, Digest: record.Digest, Bytes: record.Bytes})
	}
	return done, nil
}

// through fetches a model by the proxy of its own Secret, or that of the container.
func (f *fetcher) through(ctx context.Context, options guard.Options, works []string) (_ place.Record, err error) {
	if options.Proxy == nil {
		if options.Proxy, err = guard.Proxy(f.Getenv); err != nil {
			return place.Record{}, err
		}
	}
	client := guard.New(f.Mirrors, options)
	defer client.Close()
	f.Client = client
	return f.fetch(ctx, works)
}

// ofPod matches the variables that are of the pod, and not of the Secret of its first model: who it
// is, and its proxies.
var ofPod = regexp.MustCompile(`^(?:AWS_(?:ROLE|WEB_IDENTITY|CONTAINER)_.*|(?i:HTTPS?|NO)_(?i:PROXY))$`)

// environment returns the variables of a model, whose names begin with a prefix: no model gets the
// credentials of another one. The region of the pod belongs to its role.
func environment(envPrefix string, of func(string) string) func(string) string {
	return func(key string) string {
		role := key == "AWS_REGION" && of("AWS_ROLE_ARN") != "" && of(envPrefix+"AWS_ACCESS_KEY_ID") == ""
		if value := of(envPrefix + key); value != "" || !role && !ofPod.MatchString(key) {
			return value
		}
		return of(key)
	}
}

// named says which of several models failed.
func named(name string, err error) error {
	if name == "" {
		return err
	}
	f := failure.Of(err)
	return failure.New(f.Word, "model %s: %s", name, strings.TrimPrefix(f.Error(), "["+string(f.Word)+"] "))
}

// fetcher fetches one model.
type fetcher struct {
	source.Settings
	*download.Downloader
	maxRatio int64

	// work is the directory that the model is fetched into, and name its name.
	work *place.Work
	name string
	// kept says which parts of the files in it are there, for a later start.
	mutex sync.Mutex
	kept  map[string]*download.Kept
	// stamps are those of the files when their hashes were known.
	stamps []stamp
	// verified is true once a file is complete that a hash has verified.
	verified atomic.Bool
}

// fetch leaves the complete model in its place, and returns what is recorded of it. works are the
// work directories of all models. Where another process was first, which no lock has kept away, its
// model is verified.
func (f *fetcher) fetch(ctx context.Context, works []string) (place.Record, error) {
	record, err := f.once(ctx, works)
	if errors.Is(err, fs.ErrExist) && f.Shared {
		return f.once(ctx, works)
	}
	return record, err
}

func (f *fetcher) once(ctx context.Context, works []string) (place.Record, error) {
	volume, err := place.Open(f.Volume, f.Directory, f.Log)
	if err != nil {
		return place.Record{}, err
	}
	defer volume.Close() //nolint:errcheck // Nothing was written through it that is not synced.
	there, done, err := f.prepare(volume, works)
	if f.Shared && !done && err == nil {
		release, locking := volume.Lock()
		if locking != nil {
			return place.Record{}, locking
		}
		defer release()
		there, done, err = f.prepare(volume, works)
	}
	switch {
	case err != nil || done:
		return volume.Recorded(), err
	case there:
		return f.proved(ctx, volume)
	}
	return f.into(ctx, volume)
}

// prepare removes what earlier starts left. It returns whether a model is in its place, and whether it is this one: in a volume that is
// shared, the name of the directory or the record must say so.
func (f *fetcher) prepare(volume *place.Volume, works []string) (there, done bool, err error) {
	if there, err = volume.Complete(); err != nil {
		return false, false, err
	}
	if there {
		works = slices.DeleteFunc(slices.Clone(works), func(name string) bool { return name == f.name })
	}
	if done = there && (!f.Shared || f.SHA256 != "" || slices.Contains(volume.Recorded().Sources, f.Identity())); done {
		f.Log.Line("the model is there already")
	}
	return there, done, volume.RemoveLeftovers(f.Shared, works...)
}

// proved verifies a complete model that another source has filled, or an earlier release, by what this source lists.
func (f *fetcher) proved(ctx context.Context, volume *place.Volume) (place.Record, error) {
	f.Log.Line("the model is there already, but not known to be of this source: verifying its files")
	list, err := source.Resolve(ctx, f.Settings, f.Downloader)
	if err != nil {
		return place.Record{}, err
	}
	directory, err := volume.Model()
	if err != nil {
		return place.Record{}, err
	}
	defer directory.Close() //nolint:errcheck // It was only read.
	f.Counter.Begin("verifying", total(list))
	fetched, err := verify(ctx, directory, list.Files, f.Counter)
	if err != nil {
		return place.Record{}, failure.New(failure.Refused, "the volume has another model in the directory %s than %s has (%w): remove that directory, or use another claim",
			f.Directory, f.Identity(), err)
	}
	f.Counter.Begin("", 0)
	record := f.record(list, fetched)
	record.Sources = append(volume.Recorded().Sources, record.Sources...)
	volume.Record(record)
	return record, nil
}

// record returns what is known of a model whose files were fetched. Its digest is that of the one file, or of what sha256sum prints for
// all of them, sorted by name.
func (f *fetcher) record(list source.Model, fetched []download.Fetched) place.Record {
	record, sum := place.Record{}, sha256.New()
	if identity := f.Identity(); identity != "" {
		record.Sources = []string{identity}
	}
	for i, each := range fetched {
		record.Bytes += each.Bytes
		name := escaped.Replace(list.Files[i].Name)
		if name != list.Files[i].Name {
			each.SHA256 = `\` + each.SHA256
		}
		fmt.Fprintf(sum, "%s  %s\n", each.SHA256, name)
	}
	if record.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil)); list.Archives {
		record.Digest = "sha256:" + fetched[0].SHA256
	}
	return record
}

// escaped is how sha256sum prints names with line breaks. No name has a back-slash.
var escaped = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// into fetches the model into a work directory, and publishes it.
func (f *fetcher) into(ctx context.Context, volume *place.Volume) (record place.Record, err error) {
	if f.work, err = volume.Begin(f.name, f.Shared); err != nil {
		return record, err
	}
	if err := f.work.State(&f.kept); err != nil || f.kept == nil {
		f.kept = map[string]*download.Kept{}
	}
	defer func() { f.work.End(f.isOfUse(err)) }()
	f.Log.Line("asking for the files of the model")
	list, err := source.Resolve(ctx, f.Settings, f.Downloader)
	if err != nil {
		return record, err
	}
	fetched, err := f.files(ctx, list)
	if err != nil {
		return record, err
	}
	f.Log.Line("flushing to the volume")
	f.Counter.Begin("", 0)
	record = f.record(list, fetched)
	if err = f.work.Sync(); err == nil {
		err = f.unchanged(list)
	}
	if err == nil {
		err = f.work.Publish(record)
	}
	if err != nil {
		return record, err
	}
	f.Log.Line("the model is complete")
	return record, nil
}

// files fetches the files of a list into the work directory.
func (f *fetcher) files(ctx context.Context, list source.Model) ([]download.Fetched, error) {
	if first := list.Files[0]; list.Archives && unpack.FormatOf(first.Name) != "" {
		fetched, err := f.archive(ctx, first)
		return []download.Fetched{fetched}, err
	}
	directory, err := f.work.Model(false)
	if err != nil {
		return nil, err
	}
	defer directory.Close() //nolint:errcheck // It has no data of its own.
	// What an earlier start left.
	if err := others(directory, list.Files, directory.RemoveAll); err != nil {
		return nil, err
	}
	for _, name := range list.Directories {
		if err := directory.MkdirAll(name, 0o775); err != nil {
			return nil, err
		}
	}
	if err := f.fits(directory, list); err != nil {
		return nil, err
	}
	f.Counter.Begin("progress", total(list))
	fetched := make([]download.Fetched, len(list.Files))
	f.stamps = make([]stamp, len(list.Files))
	return fetched, f.Each(ctx, len(list.Files), func(ctx context.Context, i int) (err error) {
		fetched[i], f.stamps[i], err = f.plain(ctx, directory, list.Files[i])
		return err
	})
}

// fits is an error if the volume has no room for the files of a list, or would make one of two of
// them.
func (f *fetcher) fits(directory *os.Root, list source.Model) error {
	need, names := total(list), map[string]string{}
	for _, file := range list.Files {
		if info, err := directory.Lstat(file.Name); err == nil {
			need -= min(info.Sys().(*syscall.Stat_t).Blocks*512, info.Size())
		}
		folded := strings.ToLower(file.Name)
		if names[folded] != "" && f.work.IgnoresCase() {
			return failure.New(failure.Refused, "the volume ignores the case of names, and the model has %s and %s: leave one out by spec.model.exclude, or use another volume",
				names[folded], file.Name)
		}
		names[folded] = file.Name
	}
	if free := f.work.Free(); need > free {
		return failure.New(failure.NoSpace, "the volume has %s of free space, and the model needs %s more: use a larger volume or node disk, or remove old models", report.Bytes(free), report.Bytes(need))
	}
	return nil
}

// stamp changes when a file is written to, or replaced.
type stamp struct {
	inode        uint64
	size, change int64
}

func stampOf(info fs.FileInfo, err error) (stamp, error) {
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.Sys().(*syscall.Stat_t).Ino, info.Size(), info.ModTime().UnixNano()}, nil
}

// check is an error if a file is no longer what was hashed.
func (s stamp) check(name string, info fs.FileInfo, err error) error {
	if now, err := stampOf(info, err); err != nil || now != s {
		return failure.New(failure.Failed, "%s was changed in the volume after its hash was verified: find out what else writes there; the next start verifies it again", name)
	}
	return nil
}

// unchanged checks all files.
func (f *fetcher) unchanged(list source.Model) error {
	directory, err := f.work.Model(false)
	if err != nil {
		return err
	}
	defer directory.Close() //nolint:errcheck // It was only read.
	for i, before := range f.stamps {
		info, err := directory.Lstat(list.Files[i].Name)
		if err := before.check(list.Files[i].Name, info, err); err != nil {
			return err
		}
	}
	return nil
}

// room returns how many bytes sizeLimit leaves for one file, in whole blocks.
func (f *fetcher) room() int64 {
	return max(f.SizeLimit-place.Own, 0) / place.Block * place.Block
}

// total returns how many bytes a model has; 0 is unknown.
func total(list source.Model) (bytes int64) {
	for _, file := range list.Files {
		bytes += max(file.Size, 0)
	}
	return bytes
}

// plain fetches a file of the model to its place in the directory.
func (f *fetcher) plain(ctx context.Context, directory *os.Root, file source.File) (fetched download.Fetched, is stamp, err error) {
	if err := directory.MkdirAll(path.Dir(file.Name), 0o775); err != nil {
		return fetched, is, err
	}
	to, err := directory.OpenFile(file.Name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fetched, is, err
	}
	limit := f.room()
	if file.Size >= 0 {
		limit = file.Size // It counts in the list.
	}
	fetched, says, err := f.download(ctx, file, to, limit)
	if err = errors.Join(err, to.Close()); err != nil {
		return fetched, is, err
	}
	is, err = stampOf(directory.Lstat(file.Name)) // Only now no write changes it, also on NFS.
	f.Log.Line("%s", says)
	return fetched, is, err
}

// download fetches and verifies a file. It returns what the log says of it.
func (f *fetcher) download(ctx context.Context, file source.File, to *os.File, limit int64) (_ download.Fetched, says string, _ error) {
	kept := f.left(file, to)
	item, err := file.Item(ctx, kept != nil)
	if err != nil {
		return download.Fetched{}, "", err
	}
	f.Log.Line("fetching %s", guard.Show(item.URL))
	begin := time.Now()
	item.Kept, item.Save = kept, func(kept *download.Kept) { f.save(file.Name, kept) }
	fetched, err := f.File(ctx, item, to, limit)
	if err != nil {
		if failure.Of(err).Word == failure.WrongHash { // Nothing of it is of use.
			f.save(file.Name, nil)
			err = errors.Join(err, to.Truncate(0))
		}
		return fetched, "", err
	}
	f.save(file.Name, nil)
	verified := "not verified: set spec.model.sha256"
	if item.Size >= 0 {
		verified = "not verified: the bucket has no checksum of the whole object"
	}
	if fetched.Verified {
		verified = "verified"
		f.verified.Store(true)
	}
	return fetched, fmt.Sprintf("fetched %s of %s in %s; its hash is %s (%s)",
		report.Bytes(fetched.Bytes), guard.Show(item.URL), time.Since(begin).Round(time.Millisecond), fetched.Sum, verified), nil
}

// archive fetches an archive, and unpacks it within what its own size leaves of the limit.
func (f *fetcher) archive(ctx context.Context, file source.File) (download.Fetched, error) {
	f.Counter.Begin("progress", 0)
	stored := file
	stored.Name = place.Archive
	fetched, verified, err := f.plain(ctx, f.work.Root, stored)
	if err != nil {
		return fetched, err
	}
	archive, err := f.work.Open(place.Archive)
	if err != nil {
		return fetched, err
	}
	defer archive.Close() //nolint:errcheck // It was only read.
	refused := f.unpack(file.Name, archive, fetched.Bytes)
	info, err := archive.Stat()
	if err := cmp.Or(verified.check(place.Archive, info, err), refused); err != nil {
		return fetched, err
	}
	return fetched, f.work.Remove(place.Archive)
}

// unpack writes the files of an archive into the model's directory.
func (f *fetcher) unpack(name string, archive *os.File, size int64) error {
	directory, err := f.work.Model(true)
	if err != nil {
		return err
	}
	defer directory.Close() //nolint:errcheck // It has no data of its own.
	f.Log.Line("unpacking %s", unpack.FormatOf(name))
	f.Counter.Begin("unpacking", 0)
	unpacked, err := unpack.Archive(name, archive, size, directory, unpack.Limits{
		MaxFiles: f.MaxFiles, MaxBytes: f.room() - place.InBlocks(size), MaxRatio: f.maxRatio, Counter: f.Counter,
	})
	if err == nil {
		f.Log.Line("unpacked %d files with %s", unpacked.Files, report.Bytes(unpacked.Bytes))
	}
	return err
}

// left returns what an earlier start has left of a file. One that it has not saved may be complete: its hash decides.
func (f *fetcher) left(file source.File, on *os.File) *download.Kept {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if kept := f.kept[file.Name]; kept != nil {
		return kept
	}
	info, err := on.Stat()
	if err != nil || info.Size() == 0 || file.Size >= 0 && file.Size != info.Size() {
		return nil
	}
	return &download.Kept{Size: info.Size()}
}

// save saves what there is of a file; nil is nothing.
func (f *fetcher) save(name string, kept *download.Kept) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if _, was := f.kept[name]; kept == nil && !was {
		return
	}
	f.kept[name] = kept
	if kept == nil {
		delete(f.kept, name)
	}
	if err := f.work.SaveState(f.kept); err != nil {
		f.Log.Line("the state of the fetch cannot be saved: %v", err)
	}
}

// isOfUse is true if a later start can continue after an error, whatever it was. Only an archive
// that is refused stays refused, and what another process was quicker with is there.
func (f *fetcher) isOfUse(err error) bool {
	final := errors.Is(err, fs.ErrExist) || failure.Of(err).Word == failure.RefusedArchive
	return err != nil && !final && (len(f.kept) > 0 || f.verified.Load() || f.work.Continued)
}

// others calls one for what is in a directory and neither a file of a list nor a directory.
func others(directory *os.Root, files []source.File, one func(name string) error) error {
	names := map[string]bool{}
	for _, file := range files {
		names[file.Name] = true
	}
	return fs.WalkDir(directory.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && !names[name] || names[name] && entry.Type().IsRegular() {
			return err
		}
		if err := one(name); err != nil || !entry.IsDir() {
			return err
		}
		return fs.SkipDir
	})
}

// verify reads the files of a directory. It is an error if they are not those of a list, or are not proved to be.
func verify(ctx context.Context, directory *os.Root, files []source.File, counter *report.Counter) (fetched []download.Fetched, err error) {
	for _, file := range files {
		one, err := verifyFile(ctx, directory, file, counter)
		if err != nil {
			return nil, fmt.Errorf("%s differs", file.Name)
		}
		fetched = append(fetched, one)
	}
	return fetched, others(directory, files, func(name string) error {
		return fmt.Errorf("%s is not among its files", name)
	})
}

func verifyFile(ctx context.Context, directory *os.Root, file source.File, counter *report.Counter) (download.Fetched, error) {
	on, err := directory.OpenFile(file.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // A FIFO without a writer ends at once.
	if err != nil {
		return download.Fetched{}, err
	}
	defer on.Close() //nolint:errcheck // It was only read.
	info, err := on.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != file.Size {
		return download.Fetched{}, errors.Join(err, errors.New("it has another size, or is no file"))
	}
	item, err := file.Item(ctx, true)
	if err != nil {
		return download.Fetched{}, err
	}
	return download.Verify(item, on, counter)
}
