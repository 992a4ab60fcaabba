// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

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
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

type pinOptions struct {
	Env
	files []string
	check bool
}

func newPin(env Env) *cobra.Command {
	o := &pinOptions{Env: env}
	cmd := &cobra.Command{
		Use:     "pin -f FILE [--check]",
		GroupID: offline,
		Short:   "Write into manifests which bytes their models are",
		Long: `Write into the manifests of ModelBoxes what decides the bytes of their models: for hf:// the commit of a branch or a
tag, for https:// the SHA-256 of the file, which is read for it, and a sizeLimit that fits. Comments and the order of the
fields stay. A model that has all of it is not asked for, so a second run changes nothing.

HF_ENDPOINT is another hub. HF_TOKEN is sent to the hub, and MODEL_TOKEN to the servers of https://.

Exit codes: 0 if all models are pinned, 1 if --check finds one that is not, or if one cannot be pinned.`,
		Example: `  # Pin the models of a file, and fail in CI where one is not pinned
  {} pin -f modelbox.yaml
  {} pin -f modelbox.yaml --check`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "file with manifests; may be repeated")
	cmd.Flags().BoolVar(&o.check, "check", false, "change nothing and send no requests; exit with code 1 if a model is not pinned")
	_ = cmd.MarkFlagRequired("filename")                        // The flag exists.
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // The flag exists.
	return cmd
}

func (o *pinOptions) run(ctx context.Context) error {
	pinned := true
	for _, name := range o.files {
		data, err := os.ReadFile(name) //nolint:gosec // The user names the file.
		if err != nil {
			return err
		}
		var edits []manifest.Edit
		docs := manifest.Parse(name, data)
		if err := nothing(docs); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, doc := range docs {
			more, ok := o.document(ctx, &doc, data)
			edits, pinned = append(edits, more...), pinned && ok
		}
		if len(edits) == 0 {
			continue
		}
		if err := replace(name, manifest.Apply(data, edits)); err != nil {
			return err
		}
	}
	if !pinned {
		return exitError{Code: exitNo}
	}
	return nil
}

// replace writes a file as a whole or not at all: beside it first. It keeps the mode of the file,
// and a symbolic link.
func replace(name string, content []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	before, err := os.Stat(name)
	if err != nil {
		return err
	}
	beside, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name()) //nolint:errcheck // It is gone once it is renamed.
	_, err = beside.Write(content)
	if err := errors.Join(err, beside.Chmod(before.Mode().Perm()), beside.Sync(), beside.Close()); err != nil {
		return err
	}
	return os.Rename(beside.Name(), name)
}

// document returns the edits that pin the models of a document, and whether all are pinned with them.
func (o *pinOptions) document(ctx context.Context, doc *manifest.Document, data []byte) (edits []manifest.Edit, pinned bool) {
	box := &modelv1.ModelBox{}
	kind, unknown := kinds.Match(doc.Object.GroupVersionKind())
	if doc.Err == nil && unknown == nil && kind != kinds.ModelBox() {
		return nil, true
	}
	if err := cmp.Or(doc.Err, unknown, create.Into(doc.Object, box)); err != nil {
		fmt.Fprintf(o.ErrOut, "%s:%d: %v\n", doc.File, doc.Line, err)
		return nil, false
	}
	pinned = true
	one := func(path string, m *modelv1.Model) {
		more, err := o.model(ctx, doc, data, path, m)
		if err != nil {
			fmt.Fprintf(o.ErrOut, "%s:%d: %s: %v\n", doc.File, doc.LineOf(path), path, err)
		}
		edits, pinned = append(edits, more...), pinned && err == nil
	}
	switch m := box.Spec.Model; {
	case m != nil && m.URI != "":
		one("spec.model.uri", m)
	case box.Spec.ModelFileURL != "":
		alias := ptr.Deref(m, modelv1.Model{})
		alias.URI = box.Spec.ModelFileURL
		one("spec.modelFileURL", &alias)
	}
	for i := range box.Spec.Models {
		one(fmt.Sprintf("spec.models[%d].uri", i), &box.Spec.Models[i].Model)
	}
	return edits, pinned
}

// model returns the edits that pin one model.
func (o *pinOptions) model(ctx context.Context, doc *manifest.Document, data []byte, path string, m *modelv1.Model) ([]manifest.Edit, error) {
	fields, err := unpinned(m)
	switch {
	case err != nil || len(fields) == 0:
		return nil, err
	case o.check:
		return nil, fmt.Errorf("is not pinned: %s; run 'modelbox pin -f %s'", strings.Join(fields, ", "), doc.File)
	case !strings.HasSuffix(path, ".uri"):
		return nil, errors.New("is an alias; write it as spec.model.uri")
	}
	fmt.Fprintf(o.ErrOut, "%s:%d: asking for %s\n", doc.File, doc.LineOf(path), m.URI)
	now, err := o.resolve(ctx, *m)
	if err != nil {
		return nil, err
	}
	var changed []manifest.Field
	for _, f := range [...]struct{ name, before, now string }{
		{"uri", m.URI, now.URI}, {"sha256", m.SHA256, now.SHA256}, {"sizeLimit", m.SizeLimit.String(), now.SizeLimit.String()},
	} {
		if f.before != f.now {
			changed = append(changed, manifest.Field{Name: f.name, Value: f.now})
		}
	}
	return doc.Set(data, path, changed...)
}

// defaultHub is the hub of hf:// unless the environment has HF_ENDPOINT.
const defaultHub = "https://huggingface.co"

// maxList is how many bytes of a hub's answer are read: about 100,000 files.
const maxList = 64 << 20

var (
	hubURI = regexp.MustCompile(`^hf://([^/@]+/[^/@]+)(?:@(refs/(?:pr|convert)/[^/]+|[^/]+))?(?:/(.*))?$`)
	commit = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// unpinned returns the fields of a model, as a manifest has it, whose values are to be found out: uri if it is a branch, a tag or
// nothing of hf://, sha256, and sizeLimit. Its error says what cannot be found out.
func unpinned(m *modelv1.Model) (fields []string, err error) {
	uri, parsed := models.Parse(m.URI)
	switch scheme, _, _ := strings.Cut(m.URI, "://"); {
	case scheme == models.Hub && parsed != nil && hubURI.MatchString(m.URI):
		fields = []string{"uri"}
	case parsed != nil:
		return nil, parsed
	case !uri.IsFetched():
		return nil, nil
	case m.SHA256 != "" || scheme == models.Hub || uri.Folder:
	case scheme == models.HTTPS:
		fields = []string{"sha256"}
	default:
		return nil, fmt.Errorf("sha256 of %s:// is not found out here; set it to what sha256sum prints for a copy that you trust", scheme)
	}
	if m.SizeLimit == nil && uri.Scheme != models.S3 {
		fields = append(fields, "sizeLimit")
	}
	return fields, nil
}

// resolve returns a model with these fields as they are now.
func (o *pinOptions) resolve(ctx context.Context, m modelv1.Model) (_ *modelv1.Model, err error) {
	var need int64
	if parts := hubURI.FindStringSubmatch(m.URI); parts != nil {
		m.URI, need, err = o.hub(ctx, &m, parts[1], parts[2], parts[3])
	} else {
		need, err = o.file(ctx, &m)
	}
	if limit := fitting(need); err == nil && (m.SizeLimit == nil || m.SizeLimit.Cmp(limit) < 0) {
		m.SizeLimit = &limit
	}
	return &m, err
}

// get returns the answer to a request, with the token that the environment has by a name. A redirect to another host gets no token.
func (o *pinOptions) get(ctx context.Context, target, token string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil) //nolint:gosec // The user names the server.
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // The bytes as they are, which the fetch hashes.
	if value := os.Getenv(token); value != "" {
		request.Header.Set("Authorization", "Bearer "+value)
	}
	for begin := time.Now(); ; {
		response, err := cmp.Or(o.HTTP, http.DefaultClient).Do(request) //nolint:gosec // The user names the server.
		if err != nil || response.StatusCode == http.StatusOK {
			return response, err
		}
		_ = response.Body.Close() // What it has does not matter.
		wait, later := later(response)
		if !later || time.Since(begin)+wait > waitFor {
			return nil, refusal(response, token, time.Now().Add(wait))
		}
		fmt.Fprintf(o.ErrOut, "%s answers %s; the next request is in %s\n", request.URL.Host, response.Status, wait.Round(time.Second))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// later returns how long a server wants to be left alone, and whether it has answered enough for now.
func later(response *http.Response) (wait time.Duration, later bool) {
	wait = modeluri.Later(response.Header, time.Now())
	later = response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable && wait > 0
	return max(wait, time.Second), later
}

// waitFor is how long requests to a server wait that has answered enough for now.
const waitFor = 30 * time.Minute

// refusal returns why a server does not answer, and what to do. next is when it may.
func refusal(response *http.Response, token string, next time.Time) error {
	wayOut := "a private model needs " + token + " in the environment"
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		wayOut = "[RateLimited] the next request is of use at " + next.UTC().Format(time.RFC3339)
	case response.Header.Get("X-Error-Code") == "RevisionNotFound":
		wayOut = "the model has no such branch, tag or commit"
	}
	return fmt.Errorf("%s answers %s; %s", response.Request.URL.Host, response.Status, wayOut)
}

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

// fitting returns a limit for what is needed, with a tenth and 16 MiB more, rounded up to one of eight steps between two
// powers of two, and to mebibytes.
func fitting(need int64) resource.Quantity {
	need += need/10 + 16<<20
	step := max(int64(1)<<bits.Len64(uint64(need))>>4, 1<<20) //nolint:gosec // It is positive.
	return *resource.NewQuantity((need+step-1)/step*step, resource.BinarySI)
}
