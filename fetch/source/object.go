// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/encoding/httpbinding"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// item is an object. With a tag, as a list has it, it must still have it.
func (b bucket) item(key, tag string) download.Item {
	target := *b.base
	target.Path = strings.TrimSuffix(target.Path, "/") + "/" + key
	target.RawPath = httpbinding.EscapePath(target.Path, false)
	item := download.Item{Request: guard.Request{URL: &target, Plain: b.settings.SHA256 != ""}, Explain: b.explain}
	item.Open = func(ctx context.Context, header http.Header) (*http.Response, error) {
		input := &s3.GetObjectInput{Bucket: &b.name, Key: &key, ChecksumMode: types.ChecksumModeEnabled}
		if part := header.Get("Range"); part != "" {
			input.Range = &part
		}
		same := header.Get("If-Range") // A call cannot ask for the whole of another object.
		if tag != "" && !strings.HasPrefix(tag, "W/") {
			same = `"` + opaque(tag) + `"`
		}
		if same != "" {
			input.IfMatch = &same
		}
		answer, err := b.call(true, func(sending func(*s3.Options)) error {
			_, err := b.client.GetObject(ctx, input, sending)
			return err
		})
		if err == nil && answer.StatusCode < 300 && tag != "" && opaque(answer.Header.Get("ETag")) != opaque(tag) && answer.Header.Get("ETag") != "" {
			_ = answer.Body.Close() // It is of another object.
			err = failure.New(failure.Refused, "%s: %s", guard.Show(&target), replaced)
		}
		return answer, err
	}
	return item
}

// opaque returns what two tags of the same object have in common, however a server writes them.
func opaque(tag string) string { return strings.Trim(strings.TrimPrefix(tag, "W/"), `"`) }
