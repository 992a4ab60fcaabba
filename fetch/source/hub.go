// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // The hub publishes git's hashes of small files, which are SHA-1.
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/filename"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

const (
	defaultHub = "https://huggingface.co"
	// maxPage bounds one page of a hub's list in bytes. The hub's own pages have at most 1000 entries.
	maxPage = 16 << 20
)

// The parts of hf://org/name@commit/prefix.
var (
	hubURI = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)/([A-Za-z0-9][A-Za-z0-9._-]*)@([^/]+)(?:/(.*))?$`)
	commit = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// repository is one commit of a model at a hub.
type repository struct {
	base              *url.URL
	org, name, commit string
	// prefix is a file or directory of the repository; empty is all of it.
	prefix string
}

// parseHub reads a URI of the hub. A mirror of hf:// is either another hf:// or the hub's endpoint.
func (s Settings) parseHub() (repository, error) {
	uri, endpoint := s.URI, s.Getenv("HF_ENDPOINT")
	if rule, found := s.Mirrors.Match(uri); found && strings.HasPrefix(rule.Replacement, "hf://") {
		uri = s.Mirrors.Text(uri)
	} else if found && endpoint == "" {
		endpoint = rule.Replacement
	}
	if endpoint == "" {
		endpoint = defaultHub
	}
	base, err := url.Parse(strings.TrimSuffix(endpoint, "/"))
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return repository{}, failure.New(failure.Invalid, "HF_ENDPOINT, or the mirror of hf://, is no URL of a server: write https://host")
	}
	return parseRepository(base, uri[len("hf://"):])
}

func parseRepository(base *url.URL, text string) (repository, error) {
	parts := hubURI.FindStringSubmatch(text)
	if parts == nil {
		return repository{}, failure.New(failure.Invalid, "spec.model.uri is no model of the hub: write hf://org/name@commit")
	}
	if !commit.MatchString(parts[3]) {
		return repository{}, failure.New(failure.Invalid,
			"%s is a branch, a tag or a short commit, which may stand for other files tomorrow: name the commit by its 40 hexadecimal digits", failure.Quote(parts[3]))
	}
	prefix := strings.TrimSuffix(parts[4], "/")
	if prefix != "" {
		clean, err := filename.Clean(prefix)
		if err != nil || clean != prefix {
			return repository{}, failure.New(failure.Invalid, "spec.model.uri has a path that no file of the hub can have: correct what follows the commit")
		}
	}
	return repository{base: base, org: parts[1], name: parts[2], commit: parts[3], prefix: prefix}, nil
}

func (r repository) list() *url.URL {
	list := r.url("api", "models", r.org, r.name, "tree", r.commit)
	list.RawQuery = "recursive=true"
	return list
}

func (r repository) file(name string) *url.URL {
	return r.url(r.org, r.name, "resolve", r.commit, name)
}

func (r repository) url(segments ...string) *url.URL {
	whole := path.Join("/", r.base.Path, path.Join(segments...))
	return &url.URL{Scheme: r.base.Scheme, Host: r.base.Host, Path: whole, RawPath: escape(whole)}
}

// has is true for the files below the prefix, and for the file that is the prefix.
func (r repository) has(name string) bool {
	return r.prefix == "" || name == r.prefix || strings.HasPrefix(name, r.prefix+"/")
}

// treeEntry is an entry of the hub's list (https://huggingface.co/docs/hub/api).
type treeEntry struct {
	Type string `json:"type"`
	OID  string `json:"oid"`
	Size int64  `json:"size"`
	Path string `json:"path"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// hub lists the files of a model.
func (s Settings) hub(ctx context.Context, d *download.Downloader) (Model, error) {
	repository, err := s.parseHub()
	if err != nil {
		return Model{}, err
	}
	var sign func(*http.Request) error
	if token := s.Getenv("HF_TOKEN"); token != "" {
		if sign, err = header("Bearer " + token); err != nil {
			return Model{}, err
		}
	}
	lister := lister{settings: s, repository: repository, sign: sign}
	for page := repository.list(); page != nil; {
		if page, err = lister.page(ctx, d, page); err != nil {
			return Model{}, err
		}
	}
	if len(lister.model.Files) == 0 {
		return Model{}, failure.New(failure.NotFound, "the commit has no file at %s: check the end of spec.model.uri", failure.Quote(path.Join("/", repository.prefix)))
	}
	return lister.model, nil
}

// lister collects the files of a hub's list.
type lister struct {
	settings   Settings
	repository repository
	sign       func(*http.Request) error

	model          Model
	bytes          int64
	pages, entries int
}

// page adds the files of one page, and returns the URL of the next; nil is none.
func (l *lister) page(ctx context.Context, d *download.Downloader, page *url.URL) (*url.URL, error) {
	if l.pages++; l.pages > l.settings.MaxFiles {
		return nil, failure.New(failure.Refused, "%s has a list without an end: check spec.model.uri", guard.Show(page))
	}
	body, header, err := d.Bytes(ctx, download.Item{Request: l.request(page), Explain: explainHub}, maxPage)
	if err != nil {
		return nil, err
	}
	var entries []treeEntry
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&entries); err != nil {
		return nil, failure.New(failure.Invalid, "%s answers with something that is no list of files: check HF_ENDPOINT and the mirrors", guard.Show(page))
	}
	if err := l.add(entries); err != nil {
		return nil, err
	}
	return nextPage(page, header)
}

// request signs for the hub's own server, or its mirror, alone, wherever a page of the list leads to.
func (l *lister) request(target *url.URL) guard.Request {
	request := guard.Request{URL: target}
	hub, err := l.settings.Mirrors.URL(l.repository.base)
	server, targetErr := l.settings.Mirrors.URL(target)
	if err == nil && targetErr == nil && server.Scheme == hub.Scheme && server.Host == hub.Host {
		request.Sign = l.sign
	}
	return request
}

// nextPage returns the URL of the header Link with rel="next" (RFC 8288).
func nextPage(page *url.URL, header http.Header) (*url.URL, error) {
	for link := range strings.SplitSeq(strings.Join(header.Values("Link"), ","), ",") {
		target, parameters, found := strings.Cut(strings.TrimSpace(link), ">")
		if !found || !strings.HasPrefix(target, "<") || !strings.Contains(strings.ReplaceAll(parameters, " ", ""), `rel="next"`) {
			continue
		}
		next, err := page.Parse(target[1:])
		if err != nil || next.Scheme != page.Scheme {
			return nil, failure.New(failure.Refused, "%s continues its list at something that is no URL of the same scheme: check HF_ENDPOINT and the mirrors", guard.Show(page))
		}
		return next, nil
	}
	return nil, nil
}

// add adds the files among a page's entries, within the bounds.
func (l *lister) add(entries []treeEntry) error {
	for _, entry := range entries {
		if l.entries++; l.entries > l.settings.MaxFiles {
			return failure.New(failure.TooBig, "the model has more than %d files: name a directory of it after the commit", l.settings.MaxFiles)
		}
		if entry.Type != "file" || !l.repository.has(entry.Path) {
			continue
		}
		file, err := l.file(entry)
		if err != nil {
			return err
		}
		if l.bytes += file.Size; l.bytes > l.settings.MaxBytes || l.bytes < 0 {
			return failure.New(failure.TooBig, "the model has more than the %s of spec.model.sizeLimit: raise it, or name a directory of the model after the commit",
				report.Bytes(l.settings.MaxBytes))
		}
		l.model.Files = append(l.model.Files, file)
	}
	return nil
}

func (l *lister) file(entry treeEntry) (File, error) {
	name, err := filename.Clean(entry.Path)
	if err != nil || name != entry.Path || name == "." {
		return File{}, failure.New(failure.Refused, "the hub lists a file that cannot be stored: %s: check HF_ENDPOINT and the mirrors", failure.Quote(entry.Path))
	}
	hash, size, err := published(entry)
	if err != nil {
		return File{}, err
	}
	item := download.Item{Request: l.request(l.repository.file(name)), Size: size, Hash: hash, Explain: explainHub}
	return File{Item: item, Name: name}, nil
}

// published returns the hash and size that the hub publishes for a file: of its content, or where git has the file itself,
// of git's blob.
func published(entry treeEntry) (download.Hash, int64, error) {
	hash := download.Hash{Name: "the git hash", Field: "the hub's list", Want: entry.OID, New: gitBlob(entry.Size)}
	size, valid := entry.Size, commit.MatchString(entry.OID)
	if entry.LFS != nil {
		hash = download.Hash{Name: "sha256", Field: "the hub's list", Want: strings.ToLower(entry.LFS.OID)}
		size, valid = entry.LFS.Size, sha256.MatchString(entry.LFS.OID)
	}
	if !valid || size < 0 {
		return hash, 0, failure.New(failure.Refused, "the hub lists %s without a valid hash and size: check HF_ENDPOINT and the mirrors", failure.Quote(entry.Path))
	}
	return hash, size, nil
}

// gitBlob returns a hash as git has it for a file of a size.
func gitBlob(size int64) func() hash.Hash {
	return func() hash.Hash {
		blob := sha1.New() //nolint:gosec // It is the hash that git has for the file.
		fmt.Fprintf(blob, "blob %s\x00", strconv.FormatInt(size, 10))
		return blob
	}
}

func explainHub(answer download.Answer) (detail, wayOut string) {
	detail = answer.Header.Get("X-Error-Code")
	switch answer.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return detail, "check the organization and name in spec.model.uri; if the model is private or has terms to accept, accept them and set HF_TOKEN in the Secret of spec.model.credentials"
	case http.StatusNotFound:
		return detail, "check the organization, name and commit in spec.model.uri"
	}
	return detail, ""
}
