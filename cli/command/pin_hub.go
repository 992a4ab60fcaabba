// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// defaultHub is the hub of hf:// unless the environment has HF_ENDPOINT.
const defaultHub = "https://huggingface.co"

// maxList is how many bytes of a hub's answer are read: about 100,000 files.
const maxList = 64 << 20

// revision is what a hub says of a revision (https://huggingface.co/docs/hub/api).
type revision struct {
	Commit string `json:"sha"`
	Files  []struct {
		Name string `json:"rfilename"`
		Size int64  `json:"size"`
	} `json:"siblings"`
}

// hub returns the URI of the commit, and what the volume needs for the files that are selected.
func (o *pinOptions) hub(ctx context.Context, m *modelv1.Model, repository, of, folder string) (uri string, need int64, err error) {
	if plain, err := url.PathUnescape(of); err == nil { // The hub's pages show refs%2Fpr%2F1.
		of = plain
	}
	says, err := o.revision(ctx, repository, cmp.Or(of, "main"))
	if err != nil {
		return "", 0, err
	}
	uri = "hf://" + repository + "@" + says.Commit
	if folder = strings.TrimSuffix(folder, "/"); folder != "" {
		uri += "/" + folder
	}
	if _, err := modeluri.Parse(uri); err != nil {
		return "", 0, fmt.Errorf("with the commit of the hub, %s %w", uri, err)
	}
	need, err = says.need(m, folder)
	return uri, need, err
}

// revision asks the hub for a revision: a commit, a branch or a tag.
func (o *pinOptions) revision(ctx context.Context, repository, of string) (*revision, error) {
	endpoint := strings.TrimSuffix(cmp.Or(os.Getenv("HF_ENDPOINT"), defaultHub), "/")
	response, err := o.get(ctx, endpoint+"/api/models/"+repository+"/revision/"+url.PathEscape(of)+"?blobs=true", "HF_TOKEN")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	says := &revision{}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxList)).Decode(says); err != nil {
		return nil, fmt.Errorf("the answer of the hub: %w", err)
	}
	if commit.MatchString(of) && of != says.Commit {
		return nil, fmt.Errorf("the hub has another commit than %s: %q", of, says.Commit)
	}
	return says, nil
}

// need returns what the volume needs for the files of a revision that a model selects, in bytes.
func (r *revision) need(m *modelv1.Model, folder string) (need int64, err error) {
	selection, err := modeluri.ParseSelection(m.Include, m.Exclude)
	if err != nil {
		return 0, err
	}
	for _, f := range r.Files {
		below := folder == "" || strings.HasPrefix(f.Name+"/", folder+"/") // Or the file that the URI names.
		switch {
		case f.Size < 0 || f.Size > 1<<50:
			return 0, fmt.Errorf("the hub says that %q has %d bytes", f.Name, f.Size)
		case below && selection.Selects(f.Name):
			need += f.Size + 2*block // Its last block, and a directory.
		}
	}
	if need == 0 {
		err = errors.New("the hub has no such file at this revision")
	}
	return need, err
}

// block is the unit in which volumes count.
const block = 4096
