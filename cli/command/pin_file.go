// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// file sets the hash of a file or of an archive, and returns what the volume needs.
func (o *pinOptions) file(ctx context.Context, m *modelv1.Model) (int64, error) {
	response, err := o.get(ctx, m.URI, "MODEL_TOKEN")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	if name := strings.ToLower(path.Base(response.Request.URL.Path)); strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") && !strings.Contains(name, ".htm") {
		return 0, errors.New("the answer is a web page and no model")
	}
	sum := sha256.New()
	size, err := io.Copy(sum, response.Body)
	if err != nil {
		return 0, err
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	if m.SHA256 != "" && !strings.EqualFold(m.SHA256, hash) {
		return 0, fmt.Errorf("sha256 is %s, and the file has %s; find out which of them is right", m.SHA256, hash)
	}
	m.SHA256 = hash
	if uri, err := modeluri.Parse(m.URI); err == nil && archive.MatchString(uri.File) {
		size *= 3 // The archive, and files of twice its size: weights are hardly compressed.
	}
	return size, nil
}

// archive matches the names of what is unpacked.
var archive = regexp.MustCompile(`(?i)\.(tar|zip|gz|tgz|zst|bz2|tbz2?)$`)
