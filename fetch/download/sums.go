// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// sums are the hashes of a file: the item's own, and SHA-256, which may be the same.
type sums struct {
	wanted, sha256 hash.Hash
	io.Writer
}

func newSums(item Item) sums {
	s := sums{sha256: sha256.New()}
	s.wanted, s.Writer = s.sha256, s.sha256
	if item.Hash.New != nil {
		s.wanted = item.Hash.New()
		s.Writer = io.MultiWriter(s.wanted, s.sha256)
	}
	return s
}

// fetched says what was hashed.
func (s sums) fetched(bytes int64) Fetched {
	return Fetched{Bytes: bytes, Sum: hex.EncodeToString(s.wanted.Sum(nil)), SHA256: hex.EncodeToString(s.sha256.Sum(nil))}
}
