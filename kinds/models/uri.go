// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// The schemes of a model's URI.
const (
	HTTPS = modeluri.HTTPS
	HTTP  = modeluri.HTTP
	S3    = modeluri.S3
	Hub   = modeluri.Hub
	Image = "oci"
	Claim = "pvc"
)

// URI is what the URI of a model stands for.
type URI struct {
	Scheme string
	// File is the name of the file at https://, http:// and s3://: the last segment of the path.
	File string
	// Folder is true for s3://bucket/folder/, all objects below it.
	Folder bool
	// Image is the image of oci://, with its digest.
	Image string
	// Claim and Path are the claim of pvc://, and the directory in it, which is "" for all of it.
	Claim, Path string
}

// IsFetched reports whether a container has to fetch the model. An image or a claim is mounted
// as it is.
func (u URI) IsFetched() bool { return u.Scheme != Image && u.Scheme != Claim }

// Parse reads the URI of a model. Its error says what to write instead.
func Parse(text string) (URI, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	out := URI{Scheme: scheme}
	var err error
	switch scheme {
	case Image:
		out.Image, err = rest, checkImage(rest)
	case Claim:
		out.Claim, out.Path, err = claimPath(rest)
	default: // The program that fetches reads it with the same function.
		var fetched modeluri.URI
		fetched, err = modeluri.Parse(text)
		out.File, out.Folder = fetched.File, scheme == S3 && fetched.File == ""
	}
	return out, err
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
