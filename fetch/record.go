// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

// record returns what is known of a model whose files were fetched. Its digest is that of the one file, or of what sha256sum prints for
// all of them, sorted by name.
func (f *fetcher) record(list source.Model, fetched []download.Fetched) place.Record {
	record, sum := place.Record{}, sha256.New()
	if identity := f.Identity(); identity != "" {
		record.Sources = []string{identity}
	}
	for i, each := range fetched {
		record.Bytes += each.Bytes
		name := escaped.Replace(list.Files[i].Name)
		if name != list.Files[i].Name {
			each.SHA256 = `\` + each.SHA256
		}
		fmt.Fprintf(sum, "%s  %s\n", each.SHA256, name)
	}
	if record.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil)); list.Archives {
		record.Digest = "sha256:" + fetched[0].SHA256
	}
	return record
}

// escaped is how sha256sum prints names with line breaks. No name has a back-slash.
var escaped = strings.NewReplacer("\n", `\n`, "\r", `\r`)
