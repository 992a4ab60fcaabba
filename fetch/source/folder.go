// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

// folder returns the objects below a key.
func (b bucket) folder(ctx context.Context, key string) (Model, error) {
	input := &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &key}
	empty := func() string {
		return "the bucket has no file below " + key + b.beside(ctx, key) + ": check spec.model.uri"
	}
	model, err := b.settings.collect(empty, func(list *listing) (bool, error) {
		var page *s3.ListObjectsV2Output
		if _, err := b.ask(ctx, key, func(ctx context.Context, sending func(*s3.Options)) (err error) {
			page, err = b.client.ListObjectsV2(ctx, input, sending)
			return err
		}); err != nil {
			return false, err
		}
		for _, object := range page.Contents {
			if err := b.add(list, object, key); err != nil {
				return false, err
			}
		}
		return continues(page, input)
	})
	return model, err
}

// beside says which folders beside an empty one have files, as far as one list shows it: the version that exists, or the right spelling.
func (b bucket) beside(ctx context.Context, key string) string {
	parent := key[:strings.LastIndex(strings.TrimSuffix(key, "/"), "/")+1]
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	page := &s3.ListObjectsV2Output{}
	if _, err := b.call(false, func(sending func(*s3.Options)) (err error) {
		page, err = b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &parent}, sending)
		return err
	}); err != nil || page == nil { // The keys may be for the folder alone.
		return ""
	}
	var folders []string
	for _, object := range page.Contents {
		below, found := strings.CutPrefix(aws.ToString(object.Key), parent)
		name, file, inFolder := strings.Cut(below, "/")
		if name = parent + name + "/"; found && inFolder && file != "" && !strings.HasSuffix(file, "/") && !slices.Contains(folders, name) {
			folders = append(folders, name)
		}
	}
	if len(folders) == 0 {
		return ""
	}
	return ", but below " + strings.Join(folders[:min(len(folders), 3)], ", ")
}

// continues makes the input that of the next page, if there is one. The SDK's paginator ends where
// the token is missing, also if the page says that there is more. That, a page that does not say
// whether there is more, such as an empty body, and one that counts more than it has, is an error.
func continues(page *s3.ListObjectsV2Output, input *s3.ListObjectsV2Input) (bool, error) {
	next, counted := aws.ToString(page.NextContinuationToken), aws.ToInt32(page.KeyCount)
	ends := page.IsTruncated != nil && !*page.IsTruncated
	if next == "" && !ends || page.KeyCount != nil && int(counted) != len(page.Contents) || len(page.CommonPrefixes) > 0 {
		return false, failure.New(failure.Refused, "the bucket's list has more than it shows, and does not say how it continues: use a server that has ListObjectsV2, or an archive instead of the folder")
	}
	input.ContinuationToken = &next
	return next != "", nil
}

// add adds an object if it is a file to fetch. Consoles make empty objects whose key ends with a slash for folders.
func (b *bucket) add(list *listing, object types.Object, folder string) error {
	key, size := aws.ToString(object.Key), aws.ToInt64(object.Size)
	name, below := strings.CutPrefix(key, folder)
	if below && size == 0 && (name == "" || strings.HasSuffix(name, "/")) {
		return list.directory(strings.TrimSuffix(name, "/"))
	}
	if !below || size < 0 {
		return failure.New(failure.Refused, "the bucket lists an object that is not below the folder, or has no size: %s: check AWS_ENDPOINT_URL", key)
	}
	if !list.selects(name) {
		return nil
	}
	tag := aws.ToString(object.ETag)
	return list.add(File{Name: name, Size: size, Item: func(ctx context.Context, there bool) (download.Item, error) {
		item := b.item(key, tag)
		item.Size, item.Hash.Field, item.Published = size, theBucket, checksum // A list has no checksums.
		if !there {
			return item, nil
		}
		header, err := b.ask(ctx, key, func(ctx context.Context, sending func(*s3.Options)) error {
			_, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key, ChecksumMode: types.ChecksumModeEnabled}, sending)
			return err
		})
		if err != nil && !slices.Contains([]failure.Word{failure.Unreachable, failure.RateLimited}, failure.Of(err).Word) {
			header, err = b.d.Header(ctx, item) // An answer to HEAD has no body that says why.
		}
		item.Hash = checksum(header)
		return item, err
	}})
}
