// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// Hub is the model on the hub that the server is: hf://acme/tiny@COMMIT.
const (
	Hub    = "acme/tiny"
	Commit = "0123456789abcdef0123456789abcdef01234567"
)

// Interrupted is the same model on a hub that fails once: the request for SHA256SUMS, the first of the files by name, is answered
// when all other files have been served, the first time by 404.
const Interrupted = "acme/interrupted"

// Published is the model of the first pages on the hub, with the language models of the server for
// its files.
const (
	Published       = "Qwen/Qwen2.5-0.5B-Instruct-GGUF"
	PublishedCommit = "9217f5db79a29953eb74d5343926648285ec7e67"
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

// hub returns what a hub serves, by path.
func hub() map[string][]byte {
	served := map[string][]byte{}
	publish(served, Hub, Commit, Files())
	publish(served, Interrupted, Commit, Files())
	publish(served, Published, PublishedCommit, map[string][]byte{
		"qwen2.5-0.5b-instruct-q4_0.gguf": bodies()["tiny-1.gguf"], "qwen2.5-0.5b-instruct-q4_k_m.gguf": bodies()["tiny-2.gguf"],
	})
	return served
}

// PathOf returns the path of a file of a model on the hub.
func PathOf(model, file string) string { return "/" + model + "/resolve/" + Commit + "/" + file }

// interrupts waits until the other files of Interrupted have been served, if a request is for the first one, and reports
// whether it is the first such request.
func (s *Server) interrupts(r *http.Request) bool {
	if r.URL.Path != PathOf(Interrupted, Sums) {
		return false
	}
	for r.Context().Err() == nil {
		served := 1
		for _, access := range s.accesses() {
			if strings.HasPrefix(access.Path, "/"+Interrupted+"/") && access.Path != r.URL.Path {
				served++
			}
		}
		<-time.After(time.Second) // So that the client has them.
		if served >= len(Files()) {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted++
	return s.interrupted == 1
}

// publish adds a commit of a model. Weights are in the hub's large file storage, which publishes
// SHA-256; the other files have git's hash.
func publish(served map[string][]byte, model, commit string, files map[string][]byte) {
	entries := []hubEntry{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		entry := hubEntry{Type: "file", OID: blob(content), Size: len(content), Path: name}
		if name == Weights || path.Ext(name) == ".gguf" {
			entry.LFS = &hubFile{OID: SHA256(content), Size: len(content)}
		}
		entries = append(entries, entry)
		served["/"+model+"/resolve/"+commit+"/"+name] = content
	}
	list, err := json.Marshal(entries)
	must(err)
	served["/api/models/"+model+"/tree/"+commit] = list
}

// blob returns git's hash of a file, which is SHA-1.
func blob(content []byte) string {
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
	return hex.EncodeToString(sum[:])
}
