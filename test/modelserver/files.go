// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelserver serves a small model over HTTP for tests, in every form that spec.model
// accepts, and in those that the fetcher must refuse.
package modelserver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Weights is the largest file of the model, which is also served by itself.
const Weights = "weights.safetensors"

// Sums is the file of the model with the hashes of the others, as sha256sum writes and checks
// them: "cd /models && sha256sum -c SHA256SUMS".
const Sums = "SHA256SUMS"

// Files returns the files of the model by their names, the same in every process.
func Files() map[string][]byte {
	files := map[string][]byte{
		"config.json":          []byte(`{"model_type": "bert", "hidden_size": 128}` + "\n"),
		"tokenizer/vocab.txt":  []byte(strings.Repeat("[PAD]\n[UNK]\n[CLS]\n[SEP]\n", 100)),
		"tokenizer/merges.txt": []byte("a b\n"),
		Weights:                noise(192 << 10),
	}
	sums := &strings.Builder{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sums, "%s  %s\n", SHA256(files[name]), name)
	}
	files[Sums] = []byte(sums.String())
	return files
}

// SHA256 returns a hash as spec.model.sha256 has it.
func SHA256(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// noise returns bytes that no format compresses.
func noise(size int) []byte {
	out := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(out) // It never fails.
	return out
}
