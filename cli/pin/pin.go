// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pin finds out what a model is now: the commit of a revision, the SHA-256 of a file, and a limit for its size.
package pin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/modeluri"
)

// defaultHub is the hub of hf:// unless the environment has HF_ENDPOINT.
const defaultHub = "https://huggingface.co"

// maxList is how many bytes of a hub's answer are read: about 100,000 files.
const maxList = 64 << 20

// Client asks the servers of models. The environment has their tokens: MODEL_TOKEN and HF_TOKEN.
type Client struct {
	HTTP   *http.Client
	Getenv func(string) string
}

var (
	hubURI = regexp.MustCompile(`^hf://([^/@]+/[^/@]+)(?:@([^/]+))?(?:/(.*))?$`)
	commit = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Missing returns the fields of a model, as a manifest has it, whose values are to be found out: uri if it is a branch, a tag or
// nothing of hf://, sha256, and sizeLimit. Its error says what cannot be found out.
func Missing(m *modelv1.Model) (fields []string, err error) {
	uri, parsed := modelsource.Parse(m.URI)
	switch scheme, _, _ := strings.Cut(m.URI, "://"); {
	case scheme == modelsource.Hub && parsed != nil && hubURI.MatchString(m.URI):
		fields = []string{"uri"}
	case parsed != nil:
		return nil, parsed
	case !uri.IsFetched():
		return nil, nil
	case m.SHA256 != "" || scheme == modelsource.Hub || uri.Folder:
	case scheme == modelsource.HTTPS:
		fields = []string{"sha256"}
	default:
		return nil, fmt.Errorf("sha256 of %s:// is not found out here; set it to what sha256sum prints for a copy that you trust", scheme)
	}
	if m.SizeLimit == nil && uri.Scheme != modelsource.S3 {
		fields = append(fields, "sizeLimit")
	}
	return fields, nil
}

// Resolve returns a model with these fields as they are now.
func (c *Client) Resolve(ctx context.Context, m modelv1.Model) (_ *modelv1.Model, err error) {
	var need int64
	if parts := hubURI.FindStringSubmatch(m.URI); parts != nil {
		m.URI, need, err = c.hub(ctx, &m, parts[1], parts[2], parts[3])
	} else {
		need, err = c.file(ctx, &m)
	}
	if limit := fitting(need); err == nil && (m.SizeLimit == nil || m.SizeLimit.Cmp(limit) < 0) {
		m.SizeLimit = &limit
	}
	return &m, err
}

// get returns the answer to a request. A redirect to another host gets no token.
func (c *Client) get(ctx context.Context, target, token string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // The bytes as they are, which the fetch hashes.
	if value := c.Getenv(token); value != "" {
		request.Header.Set("Authorization", "Bearer "+value)
	}
	response, err := c.HTTP.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // What it has does not matter.
		err = fmt.Errorf("%s answers %s; a private model needs %s in the environment", request.URL.Host, response.Status, token)
	}
	return response, err
}

// file sets the hash of a file or of an archive, and returns what the volume needs.
func (c *Client) file(ctx context.Context, m *modelv1.Model) (int64, error) {
	response, err := c.get(ctx, m.URI, "MODEL_TOKEN")
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

// revision is what a hub says of a revision (https://huggingface.co/docs/hub/api).
type revision struct {
	Commit string `json:"sha"`
	Files  []struct {
		Name string `json:"rfilename"`
		Size int64  `json:"size"`
	} `json:"siblings"`
}

// hub returns the URI of the commit, and what the volume needs for the files that are selected.
func (c *Client) hub(ctx context.Context, m *modelv1.Model, repository, of, folder string) (uri string, need int64, err error) {
	says, err := c.revision(ctx, repository, cmp.Or(of, "main"))
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
func (c *Client) revision(ctx context.Context, repository, of string) (*revision, error) {
	endpoint := strings.TrimSuffix(cmp.Or(c.Getenv("HF_ENDPOINT"), defaultHub), "/")
	response, err := c.get(ctx, endpoint+"/api/models/"+repository+"/revision/"+url.PathEscape(of)+"?blobs=true", "HF_TOKEN")
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
	for _, f := range r.Files {
		selected, err := selects(m, folder, f.Name)
		switch {
		case err != nil:
			return 0, err
		case f.Size < 0 || f.Size > 1<<50:
			return 0, fmt.Errorf("the hub says that %q has %d bytes", f.Name, f.Size)
		case selected:
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

// selects reports whether a file of a repository is fetched.
func selects(m *modelv1.Model, folder, name string) (bool, error) {
	if folder != "" && name != folder && !strings.HasPrefix(name, folder+"/") {
		return false, nil
	}
	matches := func(text string) bool {
		pattern, err := modeluri.ParsePattern(text)
		return err == nil && pattern.Match(name)
	}
	for _, text := range slices.Concat(m.Include, m.Exclude) {
		if _, err := modeluri.ParsePattern(text); err != nil {
			return false, fmt.Errorf("the pattern %q %w", text, err)
		}
	}
	return (len(m.Include) == 0 || slices.ContainsFunc(m.Include, matches)) && !slices.ContainsFunc(m.Exclude, matches), nil
}

// fitting returns a limit for what is needed, with a tenth and 16 MiB more, rounded up to one of eight steps between two
// powers of two, and to mebibytes.
func fitting(need int64) resource.Quantity {
	need += need/10 + 16<<20
	step := max(int64(1)<<bits.Len64(uint64(need))>>4, 1<<20) //nolint:gosec // It is positive.
	return *resource.NewQuantity((need+step-1)/step*step, resource.BinarySI)
}
