// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Hub is the model on the hub that the server is: hf://acme/tiny@COMMIT.
const (
	Hub    = "acme/tiny"
	Commit = "0123456789abcdef0123456789abcdef01234567"
)

// hubEntry is a file in the list of a hub (https://huggingface.co/docs/hub/api).
type hubEntry struct {
	Type string   `json:"type"`
	OID  string   `json:"oid"`
	Size int      `json:"size"`
	Path string   `json:"path"`
	LFS  *hubFile `json:"lfs,omitempty"`
}

type hubFile struct {
	OID  string `json:"oid"`
	Size int    `json:"size"`
}

// hub returns what a hub serves for a model, by path. The weights are in its large file
// storage, which publishes SHA-256; the other files have git's hash.
func hub(files map[string][]byte) map[string][]byte {
	served, entries := map[string][]byte{}, []hubEntry{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		entry := hubEntry{Type: "file", OID: blob(content), Size: len(content), Path: name}
		if name == Weights {
			entry.LFS = &hubFile{OID: SHA256(content), Size: len(content)}
		}
		entries = append(entries, entry)
		served["/"+Hub+"/resolve/"+Commit+"/"+name] = content
	}
	list, err := json.Marshal(entries)
	must(err)
	served["/api/models/"+Hub+"/tree/"+Commit] = list
	return served
}

// blob returns git's hash of a file, which is SHA-1.
func blob(content []byte) string {
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
	return hex.EncodeToString(sum[:])
}
