// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modeluri reads the URI of a model that a container fetches, and the names of its files.
// Admission and the program that fetches have it in common, so that what is admitted can be
// fetched, and so have the two processes what they tell each other. It does no I/O.
package modeluri

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// The schemes of a model that is fetched.
const (
	HTTPS = "https"
	HTTP  = "http"
	S3    = "s3"
	Hub   = "hf"
)

// URI is what the URI of a model stands for.
type URI struct {
	Scheme string
	// URL is that of https:// and http://.
	URL *url.URL
	// File is the name of the file at https://, http:// and s3://: the last segment of the path. Empty is a folder of a bucket.
	File string
	// Bucket and Key are those of s3://. The key of a folder ends with a slash.
	Bucket, Key string
	// Org, Name, Commit and Path are those of hf://org/name@commit/path. An empty path is all of
	// the commit.
	Org, Name, Commit, Path string
}

var (
	hubModel   = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)/([A-Za-z0-9][A-Za-z0-9._-]*)@([^/]+)(?:/(.*))?$`)
	hubCommit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$`)
)

// maxKey is the maximum length of a key of S3 in bytes.
const maxKey = 1024

// Parse reads a URI whose scheme is in lower case. Its error says what to write instead, and
// follows the name of the field.
func Parse(text string) (URI, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	out := URI{Scheme: scheme}
	var err error
	switch scheme {
	case HTTPS, HTTP:
		err = out.web(text)
	case S3:
		err = out.bucket(rest)
	case Hub:
		err = out.hub(rest)
	default:
		err = errors.New("must begin with https://, http://, s3://, hf://, oci:// or pvc://")
	}
	return out, err
}

func (u *URI) web(text string) error {
	target, err := url.Parse(text)
	switch {
	case err != nil || target.Hostname() == "" || strings.Contains(target.RawQuery, " "):
		return errors.New("must be a URL such as https://models.example.com/bert.tar.zst, with %25 for a per cent sign, and %20 for a space of the query")
	case target.User != nil:
		return errors.New("has a user name, which every reader of the object sees; use MODEL_USERNAME and MODEL_PASSWORD in the Secret of spec.model.credentials")
	case target.Fragment != "":
		return errors.New("has a fragment, which no server gets; remove it, or write # as %23")
	}
	if u.URL, err = Host(target, false); err != nil {
		return err
	}
	u.File, err = lastSegment(target.Path)
	return err
}

// lastSegment returns the name that a file gets from the path of its URL.
func lastSegment(path string) (string, error) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch lower := strings.ToLower(name); {
	case !isPath(name):
		return "", errors.New("must end with the name of a file of at most 255 bytes, such as bert.tar.zst")
	case strings.HasSuffix(lower, ".xz"), strings.HasSuffix(lower, ".txz"):
		return "", errors.New("is compressed by xz, which is not unpacked; use .tar.zst or .tar.gz")
	}
	return name, nil
}

func (u *URI) bucket(rest string) (err error) {
	u.Bucket, u.Key, _ = strings.Cut(rest, "/")
	folder := strings.TrimSuffix(u.Key, "/")
	switch {
	case !bucketName.MatchString(u.Bucket) || strings.Contains(u.Bucket, "..") || folder == "":
		return errors.New("must have a bucket and a key: s3://bucket/key, or s3://bucket/folder/")
	case len(u.Key) > maxKey:
		return fmt.Errorf("has a key of more than %d bytes, which no bucket has", maxKey)
	case folder == u.Key:
		u.File, err = lastSegment(u.Key)
	case strings.HasSuffix(folder, "/") || !isPath(folder[strings.LastIndexByte(folder, '/')+1:]):
		return errors.New("must have a folder without empty segments, \".\" and \"..\" at its end: s3://bucket/folder/")
	}
	return err
}

func (u *URI) hub(rest string) error {
	parts := hubModel.FindStringSubmatch(rest)
	switch {
	case parts == nil:
		return errors.New("must be a commit of a model: hf://org/name@commit")
	case !hubCommit.MatchString(parts[3]):
		return fmt.Errorf("%q is a branch, a tag or a short commit, which can stand for other files later; use the 40 hexadecimal digits of the commit", parts[3])
	}
	u.Org, u.Name, u.Commit, u.Path = parts[1], parts[2], parts[3], strings.TrimSuffix(parts[4], "/")
	if u.Path != "" && !isPath(u.Path) {
		return errors.New("must have a relative path after the commit, or none: without empty segments, \".\" and \"..\", at most 255 bytes between slashes, 2048 in all, and 64 directories")
	}
	return nil
}

// isPath reports whether files can have a path, as it is written.
func isPath(path string) bool {
	clean, err := Clean(path)
	return err == nil && clean == path && clean != "."
}
