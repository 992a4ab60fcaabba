// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelsource says what spec.model becomes in a pod: it reads the URI, and builds the
// volume, its mount, and the container that fetches. It does no I/O.
package modelsource

import (
	// A digest is well formed only if its algorithm is linked in.
	_ "crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The schemes of a model's URI.
const (
	HTTPS = "https"
	HTTP  = "http"
	S3    = "s3"
	Hub   = "hf"
	Image = "oci"
	Claim = "pvc"
)

// URI is what the URI of a model stands for.
type URI struct {
	Scheme string
	// File is the name of the file at https://, http:// and s3://: the last segment of the path.
	File string
	// Image is the image of oci://, with its digest.
	Image string
	// Claim and Path are the claim of pvc://, and the directory in it, which is "" for all of it.
	Claim, Path string
}

// IsFetched reports whether a container has to fetch the model. An image or a claim is mounted
// as it is.
func (u URI) IsFetched() bool { return u.Scheme != Image && u.Scheme != Claim }

// The parts of hf://org/name@commit/path and of s3://bucket/key, as the program that fetches
// reads them (fetch/source).
var (
	hubModel   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*@([^/]+)(?:/(.*))?$`)
	hubCommit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$`)
)

// maxFileName is the maximum length of the name of a file in bytes (NAME_MAX of Linux).
const maxFileName = 255

// Parse reads the URI of a model. Its error says what to write instead.
func Parse(text string) (URI, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	out := URI{Scheme: scheme}
	var err error
	switch scheme {
	case HTTPS, HTTP:
		out.File, err = webFile(text)
	case S3:
		out.File, err = bucketFile(rest)
	case Hub:
		err = checkHub(rest)
	case Image:
		out.Image, err = rest, checkImage(rest)
	case Claim:
		out.Claim, out.Path, err = claimPath(rest)
	default:
		err = errors.New("must begin with https://, http://, s3://, hf://, oci:// or pvc://")
	}
	return out, err
}

func webFile(text string) (string, error) {
	target, err := url.Parse(text)
	switch {
	case err != nil || target.Hostname() == "":
		return "", errors.New("must be a URL such as https://models.example.com/bert.tar.zst, with %25 for a per cent sign")
	case target.User != nil:
		return "", errors.New("has a user name, which every reader of the object sees; use MODEL_USERNAME and MODEL_PASSWORD in the Secret of spec.model.credentials")
	case target.Fragment != "":
		return "", errors.New("has a fragment, which no server gets; remove it, or write # as %23")
	}
	return lastSegment(target.Path)
}

// lastSegment returns the name that a file gets from the path of its URL.
func lastSegment(path string) (string, error) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if name == "" || name == "." || name == ".." || len(name) > maxFileName || strings.ContainsAny(name, "\x00\\") {
		return "", errors.New("must end with the name of a file of at most 255 bytes, such as bert.tar.zst")
	}
	return name, nil
}

func bucketFile(rest string) (string, error) {
	bucket, key, _ := strings.Cut(rest, "/")
	if !bucketName.MatchString(bucket) {
		return "", errors.New("must have a bucket and a key: s3://bucket/key")
	}
	return lastSegment(key)
}

func checkHub(rest string) error {
	parts := hubModel.FindStringSubmatch(rest)
	switch {
	case parts == nil:
		return errors.New("must be a commit of a model: hf://org/name@commit")
	case !hubCommit.MatchString(parts[1]):
		return fmt.Errorf("%q is a branch, a tag or a short commit, which can stand for other files later; use the 40 hexadecimal digits of the commit", parts[1])
	}
	if path := strings.TrimSuffix(parts[2], "/"); path != "" && !isPath(path) {
		return errors.New("must have a relative path without empty segments, \".\" and \"..\" after the commit, or none")
	}
	return nil
}

func checkImage(image string) error {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return fmt.Errorf("must be an image with its digest, such as oci://registry.example.com/team/model@sha256:...: %w", err)
	}
	digested, ok := named.(reference.Canonical)
	if !ok || digested.Digest().Algorithm() != "sha256" {
		return errors.New("must have the digest of the image (oci://registry.example.com/team/model@sha256:...), because a tag can stand for another one later")
	}
	return nil
}

func claimPath(rest string) (claim, path string, err error) {
	claim, path, _ = strings.Cut(rest, "/")
	path = strings.TrimSuffix(path, "/")
	switch {
	case len(validation.IsDNS1123Subdomain(claim)) > 0:
		err = errors.New("must have the name of a PersistentVolumeClaim: pvc://claim, or pvc://claim/path")
	case path != "" && !isPath(path):
		err = errors.New("must have a relative path without empty segments, \".\" and \"..\" after the claim, or none")
	}
	return claim, path, err
}

// isPath reports whether a path stays below the directory that it is joined to.
func isPath(path string) bool { return fs.ValidPath(path) && !strings.ContainsAny(path, "\x00\\") }
