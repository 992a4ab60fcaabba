// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyendpoints "github.com/aws/smithy-go/endpoints"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// maxAnswer bounds an answer of S3 or STS that is no file, in bytes. A list has at most 1000 keys of 1 KiB.
const maxAnswer = 4 << 20

var regionName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

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
	return one(parsed.File, item), nil
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

// bucket is a bucket of S3. The SDK signs and decodes, and knows Amazon's servers; addresses, redirects and retries are the guard's and
// the Downloader's.
type bucket struct {
	settings Settings
	d        *download.Downloader
	name     string
	client   *s3.Client
	// base is where its objects are.
	base *url.URL
}

// open returns a bucket. It sends no request.
func (s Settings) open(ctx context.Context, name string, d *download.Downloader) (b bucket, err error) {
	options := s3.Options{
		Retryer: aws.NopRetryer{}, DisableS3ExpressSessionAuth: aws.Bool(true), EndpointResolverV2: &mirrored{s.Mirrors}, HTTPSignerV4: signer{},
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired, ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if options.Region, err = s.region(); err != nil {
		return b, err
	}
	if options.BaseEndpoint, err = s.server("AWS_ENDPOINT_URL"); err != nil {
		return b, err
	}
	style := s.Getenv("AWS_S3_ADDRESSING_STYLE")
	if style != "" && style != "path" && style != "virtual" {
		return b, failure.New(failure.Invalid, "AWS_S3_ADDRESSING_STYLE is neither path nor virtual: correct it")
	}
	options.UsePathStyle = options.BaseEndpoint != nil && style != "virtual"
	if options.Credentials, err = s.credentials(ctx, d); err != nil {
		return b, err
	}
	endpoint, err := options.EndpointResolverV2.ResolveEndpoint(ctx, s3.EndpointParameters{
		Bucket: &name, Region: &options.Region, Endpoint: options.BaseEndpoint, ForcePathStyle: &options.UsePathStyle, DisableS3ExpressSessionAuth: aws.Bool(true),
	})
	if err != nil {
		return b, failure.New(failure.Invalid, "the bucket has no address: check spec.model.uri, AWS_ENDPOINT_URL and AWS_REGION")
	}
	return bucket{settings: s, d: d, name: name, client: s3.New(options), base: &endpoint.URI}, nil
}

// mirrored resolves endpoints as the SDK does, and then by the mirrors.
type mirrored struct{ rules guard.Rules }

func (m *mirrored) ResolveEndpoint(ctx context.Context, parameters s3.EndpointParameters) (smithyendpoints.Endpoint, error) {
	out, err := s3.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, parameters)
	if err != nil {
		return out, err
	}
	to, err := m.rules.URL(&out.URI)
	if err == nil {
		out.URI = *to
	}
	return out, err
}
