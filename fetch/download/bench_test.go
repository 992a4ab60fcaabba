// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// BenchmarkHashAndWrite writes 64 MiB into a file and hashes them, without a network.
func BenchmarkHashAndWrite(b *testing.B) {
	const size = 64 << 20
	d := &download.Downloader{Client: memory(size), RetryFor: time.Second}
	item := download.Item{Request: guard.Request{URL: &url.URL{Scheme: "https", Host: "a.test"}}, Size: size}
	path := filepath.Join(b.TempDir(), "file")
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		file, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := d.File(b.Context(), item, file, size); err != nil {
			b.Fatal(err)
		}
		file.Close()
	}
}

// memory is a server of so many bytes.
type memory int64

func (m memory) Get(context.Context, guard.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, ContentLength: int64(m), Body: io.NopCloser(io.LimitReader(zeros{}, int64(m)))}, nil
}
