// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"errors"
	"path"
	"strings"
)

const (
	// maxSegment is the longest name of a file or directory in bytes, as Linux has it (NAME_MAX).
	maxSegment = 255
	// maxName is the longest name with its directories in bytes. Linux allows 4096 (PATH_MAX), of
	// which the place where the volume is mounted takes some.
	maxName = 2048
	// maxDepth is how many directories deep a file may be.
	maxDepth = 64
)

// The reasons for which Clean refuses a name. Each completes "the archive has an entry ...".
var (
	errOutside = errors.New("outside of its directory")
	errEmpty   = errors.New("without a name")
	errBytes   = errors.New("with a NUL byte or a back-slash in its name")
	errTooLong = errors.New("with a name of more than 255 bytes, or of more than 2048 with its directories")
	errTooDeep = errors.New("more than 64 directories deep")
)

// Clean returns the slash-separated name that a server or an archive gives to a file, in its
// shortest form: a path below the directory that it is joined to. The root itself ("./") is ".". A
// ".." is refused even where it would stay inside.
func Clean(name string) (string, error) {
	switch {
	case name == "":
		return "", errEmpty
	case strings.ContainsAny(name, "\x00\\"):
		return "", errBytes
	case strings.HasPrefix(name, "/"):
		return "", errOutside
	case len(name) > maxName:
		return "", errTooLong
	}
	if err := checkSegments(strings.Split(name, "/")); err != nil {
		return "", err
	}
	return path.Clean(name), nil
}

func checkSegments(segments []string) error {
	if len(segments) > maxDepth {
		return errTooDeep
	}
	for _, segment := range segments {
		if segment == ".." {
			return errOutside
		}
		if len(segment) > maxSegment {
			return errTooLong
		}
	}
	return nil
}
