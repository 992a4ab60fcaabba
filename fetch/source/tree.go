// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // The hub publishes git's hashes of small files, which are SHA-1.
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// maxPage bounds one page of a hub's list in bytes. The hub's own pages have at most 1000 entries.
const maxPage = 16 << 20

// commit is how a commit, and the hash of a file in git, is written.
var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

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

// lister collects the files of a hub's list.
type lister struct {
	*listing
	repository
	authorization string
}

// page adds the files of one page, and returns the URL of the next; nil is none.
func (l *lister) page(ctx context.Context, d *download.Downloader, page *url.URL) (*url.URL, error) {
	request := l.request(page)
	request.Led = l.pages > 1
	body, header, err := d.Read(ctx, download.Item{Request: request, Explain: explainHub}, maxPage)
	if err == nil {
		err = l.read(json.NewDecoder(bytes.NewReader(body)))
	}
	if err != nil {
		return nil, err
	}
	return l.nextPage(page, header)
}

// read adds the files of a page. It decodes one entry at a time: what it costs is bounded by what is kept.
func (l *lister) read(list *json.Decoder) error {
	noList := failure.New(failure.Invalid, "%s answers with something that is no list of files: check HF_ENDPOINT and the mirrors", guard.Show(l.list()))
	if begin, err := list.Token(); err != nil || begin != json.Delim('[') {
		return noList
	}
	for list.More() {
		var entry treeEntry
		if list.Decode(&entry) != nil {
			return noList
		}
		if err := l.add(entry); err != nil {
			return err
		}
	}
	if _, err := list.Token(); err != nil {
		return noList
	}
	if _, err := list.Token(); !errors.Is(err, io.EOF) { // Two lists in one answer may be two halves.
		return noList
	}
	return nil
}

// request has the credentials for the hub's own server, or its mirror, alone, wherever a page of the list leads to.
func (l *lister) request(target *url.URL) guard.Request {
	request := guard.Request{URL: target}
	hub, err := l.settings.Mirrors.URL(l.base)
	server, targetErr := l.settings.Mirrors.URL(target)
	if err == nil && targetErr == nil && server.Scheme == hub.Scheme && server.Host == hub.Host {
		request.Authorization = l.authorization
	}
	return request
}

// oneLink is a link of the header Link: its URL, and its parameters, both of which may have commas
// (RFC 8288, 3).
var oneLink = regexp.MustCompile(`^[\s,]*<([^>]*)>((?:"(?:[^"\\]|\\.)*"|[^",])*)(?:,|$)`)

// nextPage returns the URL of the header Link that has "next" among its relations; nil is the end.
// A header that cannot be read is an error: it may say that there is more.
func (l *lister) nextPage(page *url.URL, header http.Header) (next *url.URL, err error) {
	noNext := failure.New(failure.Refused, "%s continues its list at something that is no URL of the same scheme: check HF_ENDPOINT and the mirrors", guard.Show(l.list()))
	for rest := strings.Join(header.Values("Link"), ","); strings.Trim(rest, ", \t") != ""; {
		link := oneLink.FindStringSubmatch(rest)
		if link == nil {
			return nil, noNext
		}
		rest = rest[len(link[0]):]
		_, parameters, err := mime.ParseMediaType("link" + link[2])
		if err != nil {
			return nil, noNext
		}
		if !slices.Contains(strings.Fields(strings.ToLower(strings.ReplaceAll(parameters["rel"], "'", " "))), "next") {
			continue
		}
		if next, err = page.Parse(link[1]); err != nil || next.Scheme != page.Scheme || link[1] == "" {
			return nil, noNext
		}
	}
	return next, nil
}

// add adds an entry of the list if it is a file to fetch.
func (l *lister) add(entry treeEntry) error {
	below := l.Path == "" || strings.HasPrefix(entry.Path+"/", l.Path+"/") // Or the file that the URI names.
	if err := l.entry(); err != nil || entry.Type != "file" || !below || !l.selects(entry.Path) {
		return err
	}
	hash, size, err := published(entry)
	if err != nil {
		return err
	}
	return l.listing.add(File{Name: entry.Path, Size: size, Item: func(context.Context, bool) (download.Item, error) {
		return download.Item{Request: l.request(l.url(l.Org, l.Name, "resolve", l.Commit, entry.Path)), Size: size, Hash: hash, Explain: explainHub}, nil
	}})
}

// published returns the hash and size that the hub publishes for a file: of its content, or where git has the file itself,
// of git's blob.
func published(entry treeEntry) (download.Hash, int64, error) {
	blob := func() hash.Hash {
		blob := sha1.New() //nolint:gosec // It is the hash that git has for the file.
		fmt.Fprintf(blob, "blob %d\x00", entry.Size)
		return blob
	}
	hash := download.Hash{Name: "the git hash", Field: "the hub's list", Want: entry.OID, New: blob}
	size, valid := entry.Size, commit.MatchString(entry.OID)
	if entry.LFS != nil {
		hash = download.Hash{Name: "sha256", Field: "the hub's list", Want: strings.ToLower(entry.LFS.OID)}
		size, valid = entry.LFS.Size, sha256Text.MatchString(entry.LFS.OID)
	}
	if !valid || size < 0 {
		return hash, 0, failure.New(failure.Refused, "the hub lists %s without a valid hash and size: check HF_ENDPOINT and the mirrors", entry.Path)
	}
	return hash, size, nil
}
