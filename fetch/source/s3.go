// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"encoding/xml"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

var (
	errorCode  = regexp.MustCompile(`^[A-Za-z]{1,64}$`)
	regionName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
)

// bucket returns the one file of s3://bucket/key, or those of s3://bucket/folder/. The key is taken as it is written, without
// percent-decoding, as the AWS CLI does.
func (s Settings) bucket(ctx context.Context, d *download.Downloader) (Model, error) {
	uri := s.Mirrors.Text(s.URI)
	if !strings.HasPrefix(strings.ToLower(uri), "s3://") {
		return Model{}, failure.New(failure.Invalid, "--mirror replaces s3:// by another scheme: replace it by s3://, or replace the https:// URL of the endpoint")
	}
	parsed, err := s.parse(uri)
	if err != nil {
		return Model{}, err
	}
	b, err := s.open(ctx, parsed.Bucket, d)
	if err != nil {
		return Model{}, err
	}
	if parsed.File == "" {
		return b.folder(ctx, parsed.Key)
	}
	item := b.item(parsed.Key, "")
	item.Size, item.Hash = -1, s.hash()
	return Model{Files: []File{{Item: item, Name: parsed.File}}, Archives: true}, nil
}

// server returns the URL of a server from a variable; nil is not set.
func (s Settings) server(variable string) (*string, error) {
	text := s.Getenv(variable)
	if text == "" {
		return nil, nil
	}
	base, ok := serverOf(text)
	if !ok {
		return nil, failure.New(failure.Invalid, "%s is no URL of a server: write https://host:port", variable)
	}
	return aws.String(base.String()), nil
}

// serverOf reads the URL of a server, which may have a path, without a slash at its end.
func serverOf(text string) (*url.URL, bool) {
	base, err := url.Parse(strings.TrimSuffix(text, "/"))
	return base, err == nil && base.Host != "" && base.User == nil && base.RawQuery == "" && base.Fragment == ""
}

// region returns AWS_REGION, or that of the SDKs for servers that have no regions.
func (s Settings) region() (string, error) {
	region := cmp.Or(s.Getenv("AWS_REGION"), "us-east-1")
	if !regionName.MatchString(region) {
		return "", failure.New(failure.Invalid, "AWS_REGION is no region: write it as eu-central-1 is written")
	}
	return region, nil
}

// s3Error is the body of an S3 server's refusal.
type s3Error struct {
	Code   string `xml:"Code"`
	Region string `xml:"Region"`
}

// expired are the ways out of refusals that have another cause than their status says.
var expired = map[string]string{ //nolint:gosec // They are texts.
	"ExpiredToken":         "the temporary credentials have expired: write new ones into the Secret of spec.model.credentials, all three of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
	"TokenRefreshRequired": "the temporary credentials have expired: write new ones into the Secret of spec.model.credentials",
	"InvalidToken":         "AWS_SESSION_TOKEN does not belong to the other keys of the Secret of spec.model.credentials: write all three anew",
	"RequestTimeTooSkewed": "the clock of the node is wrong: correct it",
}

func explainS3(answer *http.Response, content []byte) (detail, wayOut string) {
	var body s3Error
	_ = xml.Unmarshal(content, &body)
	region := body.Region
	if region == "" && answer.StatusCode != http.StatusNotFound {
		region = answer.Header.Get("X-Amz-Bucket-Region")
	}
	if wayOut, ok := expired[body.Code]; ok {
		return body.Code, wayOut
	}
	switch {
	case region != "" && (answer.StatusCode == http.StatusBadRequest || answer.StatusCode/100 == 3):
		return body.Code, "set AWS_REGION to " + failure.Quote(region) + " in the Secret of spec.model.credentials"
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return body.Code, "check the keys AWS_* of the Secret of spec.model.credentials, and that they may read the object"
	case answer.StatusCode == http.StatusPreconditionFailed:
		return body.Code, "the object was replaced while it was fetched: the next start fetches the new one"
	case answer.StatusCode == http.StatusNotFound:
		return body.Code, "check the bucket and the key in spec.model.uri, and AWS_ENDPOINT_URL"
	}
	return body.Code, ""
}
