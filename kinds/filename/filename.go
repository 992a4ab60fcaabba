// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filename checks the names that servers and archives give to files. It decides alone, without I/O.
package filename

import (
	"errors"
	"path"
	"strings"
)

const (
	// maxSegment is the longest name of a file or directory in bytes, as Linux has it (NAME_MAX).
	maxSegment = 255
	// maxName is the longest name with its directories in bytes. Linux allows 4096 (PATH_MAX), of which the place where
	// the volume is mounted takes some.
	maxName = 2048
	// maxDepth is how many directories deep a file may be.
	maxDepth = 64
)

// Reasons for which Clean and Single refuse a name. Each completes "the archive has an entry ...".
var (
	ErrOutside  = errors.New("outside of its directory")
	ErrEmpty    = errors.New("without a name")
	ErrBytes    = errors.New("with a NUL byte or a back-slash in its name")
	ErrTooLong  = errors.New("with a name of more than 255 bytes, or of more than 2048 with its directories")
	ErrTooDeep  = errors.New("more than 64 directories deep")
	errSegments = errors.New("with a slash in its name")
)

// Clean returns a slash-separated name in its shortest form, which is a path below the directory that it is joined to.
// The root itself ("./") is ".". A ".." is refused even where it would stay inside.
func Clean(name string) (string, error) {
	switch {
	case name == "":
		return "", ErrEmpty
	case strings.ContainsAny(name, "\x00\\"):
		return "", ErrBytes
	case strings.HasPrefix(name, "/"):
		return "", ErrOutside
	case len(name) > maxName:
		return "", ErrTooLong
	}
	if err := checkSegments(strings.Split(name, "/")); err != nil {
		return "", err
	}
	return path.Clean(name), nil
}

func checkSegments(segments []string) error {
	if len(segments) > maxDepth {
		return ErrTooDeep
	}
	for _, segment := range segments {
		if segment == ".." {
			return ErrOutside
		}
		if len(segment) > maxSegment {
			return ErrTooLong
		}
	}
	return nil
}

// Single returns the name of a file without directories, or why it is none.
func Single(name string) (string, error) {
	clean, err := Clean(name)
	switch {
	case err != nil:
		return "", err
	case clean == ".":
		return "", ErrEmpty
	case clean != name || strings.Contains(clean, "/"):
		return "", errSegments
	}
	return clean, nil
}
