// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

const (
	// answerWithin is the timeout for a checksum, which is the first request to a site.
	// If a firewall drops packets to a site, this time is lost once.
	answerWithin = 5 * time.Second
	// stallAfter is how long a download may receive no data.
	stallAfter = 15 * time.Second

	maxChecksums = 1 << 20
	maxProgram   = 1 << 30
)

var (
	errStalled  = errors.New("no data for too long")
	errChecksum = errors.New("the content does not match its published checksum")
)

// sites are the web sites that publish programs.
type sites struct {
	// kubernetes and etcd are the URLs of the release directories.
	kubernetes, etcd string
	// hosts are the allowed hosts, with their subdomains: the sites themselves and
	// those to which they redirect.
	hosts []string
}

// officialSites are the only sites that are used. The documentation of kubectl's
// installation and etcd's release notes name them.
var officialSites = sites{
	kubernetes: "https://dl.k8s.io/release",
	etcd:       "https://github.com/etcd-io/etcd/releases/download",
	hosts:      []string{"k8s.io", "github.com", "githubusercontent.com"},
}

// release is a published file.
type release struct {
	// url is the file, and sums the file with its SHA-256 checksum.
	url, sums string
	// member is the program's path in the archive if url is a .tar.gz, else empty.
	member string
}

// fetcher downloads programs. It is not safe for concurrent use.
type fetcher struct {
	sites        sites
	goos, goarch string
	client       *http.Client
	answerWithin time.Duration
	stallAfter   time.Duration
	// unreachable are hosts that did not respond; they are not used again.
	unreachable []string
}

func newFetcher(from sites) *fetcher {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// Programs are downloaded directly from the sites, and not through a proxy. Where the
	// sites cannot be reached, the programs are built, with modules from GOPROXY.
	transport.Proxy = nil
	return &fetcher{
		sites:        from,
		goos:         runtime.GOOS,
		goarch:       runtime.GOARCH,
		client:       &http.Client{Transport: transport, CheckRedirect: from.checkRedirect},
		answerWithin: answerWithin,
		stallAfter:   stallAfter,
	}
}

// checkRedirect refuses redirects to unknown hosts, and redirects that drop TLS.
func (s sites) checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errors.New("too many redirects")
	}
	if next.URL.Scheme != via[0].URL.Scheme {
		return fmt.Errorf("refusing to be redirected to %s", next.URL.Redacted())
	}
	host := next.URL.Hostname()
	known := func(h string) bool { return host == h || strings.HasSuffix(host, "."+h) }
	if !slices.ContainsFunc(s.hosts, known) {
		return fmt.Errorf("refusing to be redirected to %s", host)
	}
	return nil
}

// locate returns where t is published for this platform. Kubernetes publishes its
// servers for Linux only, and kubectl for all platforms. etcd's archive is a .tar.gz on
// Linux only. kwok publishes programs without checksums, so it is always built.
func (f *fetcher) locate(t tool, version string) (release, bool) {
	var found release
	switch {
	case t.module == kubernetesModule && (f.goos == "linux" || t.name == "kubectl"):
		found.url = fmt.Sprintf("%s/%s/bin/%s/%s/%s", f.sites.kubernetes, version, f.goos, f.goarch, t.name)
		found.sums = found.url + ".sha256"
	case t.module == etcdModule && f.goos == "linux":
		base := f.sites.etcd + "/" + version
		archive := fmt.Sprintf("etcd-%s-%s-%s", version, f.goos, f.goarch)
		found = release{url: base + "/" + archive + ".tar.gz", sums: base + "/SHA256SUMS", member: archive + "/etcd"}
	default:
		return release{}, false
	}
	return found, !slices.Contains(f.unreachable, host(found.url))
}

func host(of string) string {
	parsed, err := url.Parse(of)
	if err != nil {
		return of
	}
	return parsed.Host
}

// fetch downloads the program of from to dest. If it fails, no file with unverified
// content is left there.
func (f *fetcher) fetch(ctx context.Context, from release, dest string, step *progress.Step) (err error) {
	want, err := f.checksum(ctx, from)
	if err != nil {
		return err
	}
	file := dest
	if from.member != "" {
		file += ".tar.gz"
	}
	defer func() {
		if err != nil {
			_ = os.Remove(dest)
		}
		if file != dest {
			_ = os.Remove(file)
		}
	}()
	got, err := f.save(ctx, from.url, file, step)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s: %w (want sha256 %s, got %s)", from.url, errChecksum, want, got)
	}
	if from.member == "" {
		return nil
	}
	return extract(file, from.member, dest)
}

func (f *fetcher) checksum(ctx context.Context, from release) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, f.answerWithin)
	defer cancel()
	response, err := f.get(ctx, from.sums)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	sums, err := io.ReadAll(io.LimitReader(response.Body, maxChecksums))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", from.sums, err)
	}
	sum, err := findChecksum(string(sums), path.Base(from.url))
	if err != nil {
		return "", fmt.Errorf("%s: %w", from.sums, err)
	}
	return sum, nil
}

// get returns a successful response. A host without any response is recorded, as is one
// that stops during a download (see save), so that the next tool does not wait for it
// again.
func (f *fetcher) get(ctx context.Context, from string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", from, err)
	}
	response, err := f.client.Do(request)
	if err != nil {
		f.unreachable = append(f.unreachable, request.URL.Host)
		return nil, fmt.Errorf("cannot download from %s: %w", request.URL.Host, causeOr(ctx, withoutURL(err)))
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s: %s", from, response.Status)
	}
	return response, nil
}

// causeOr returns the cause of the end of ctx, or err if ctx has not ended.
func causeOr(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// withoutURL shortens an error of net/http, which repeats the URL.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// save writes the content of a URL to a file and returns its SHA-256.
func (f *fetcher) save(ctx context.Context, from, to string, step *progress.Step) (sum string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(f.stallAfter, func() { cancel(errStalled) })
	defer stalled.Stop()

	response, err := f.get(ctx, from)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()

	hash := sha256.New()
	received := &meter{total: response.ContentLength, step: step, moved: func() { stalled.Reset(f.stallAfter) }}
	content := io.TeeReader(io.LimitReader(response.Body, maxProgram), io.MultiWriter(hash, received))
	if err := write(to, content); err != nil {
		f.unreachable = append(f.unreachable, host(from))
		return "", fmt.Errorf("downloading %s: %w", from, causeOr(ctx, err))
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func write(to string, content io.Reader) error {
	file, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// meter counts the bytes of a download.
type meter struct {
	done, total int64
	step        *progress.Step
	moved       func()
}

// Write implements [io.Writer].
func (m *meter) Write(p []byte) (int, error) {
	m.moved()
	m.done += int64(len(p))
	if m.total > 0 {
		m.step.Detail("%d of %d MiB", m.done>>20, m.total>>20)
	} else {
		m.step.Detail("%d MiB", m.done>>20)
	}
	return len(p), nil
}

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

// findChecksum reads both formats in which checksums are published: only the checksum
// for a single file, and lines of "checksum  file" for several files.
func findChecksum(sums, file string) (string, error) {
	for line := range strings.Lines(sums) {
		fields := strings.Fields(line)
		bare := len(fields) == 1
		listed := len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == file
		if (bare || listed) && sha256Hex.MatchString(fields[0]) {
			return fields[0], nil
		}
	}
	return "", fmt.Errorf("it contains no checksum of %s", file)
}

// extract writes one member of a .tar.gz to dest.
func extract(archive, member, dest string) error {
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("opening the archive: %w", err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	for entries := tar.NewReader(unzipped); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the archive does not contain %s", member)
		}
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		if path.Clean(header.Name) == member && header.Typeflag == tar.TypeReg {
			return write(dest, io.LimitReader(entries, maxProgram))
		}
	}
}
