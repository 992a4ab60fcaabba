// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

const (
	// defaultRegion is that of the SDKs for servers that have no regions.
	defaultRegion = "us-east-1"
	// emptyHash is the SHA-256 of a request without a body.
	emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// bucketName is what servers allow. Amazon allows less: dnsName.
var (
	bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$`)
	dnsName    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*[a-z0-9]$`)
	regionName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
)

// bucket returns the one file of s3://bucket/key. The key is taken as it is written, without percent-decoding, as the AWS
// CLI does.
func (s Settings) bucket() (Model, error) {
	uri := s.Mirrors.Text(s.URI)
	if !strings.HasPrefix(strings.ToLower(uri), "s3://") {
		return Model{}, failure.New(failure.Invalid, "--mirror replaces s3:// by another scheme: replace it by s3://, or replace the https:// URL of the endpoint")
	}
	bucket, key, _ := strings.Cut(uri[len("s3://"):], "/")
	if !bucketName.MatchString(bucket) {
		return Model{}, failure.New(failure.Invalid, "spec.model.uri has no valid bucket: write s3://bucket/key")
	}
	name, err := lastSegment(key)
	if err != nil {
		return Model{}, err
	}
	target, err := s.objectURL(bucket, key)
	if err != nil {
		return Model{}, err
	}
	sign, err := s.signature()
	item := download.Item{Request: guard.Request{URL: target, Plain: s.SHA256 != "", Sign: sign}, Size: -1, Hash: s.hash(), Explain: explainS3}
	return Model{Files: []File{{Item: item, Name: name}}, Archives: true}, err
}

// objectURL returns the URL of an object: at AWS_ENDPOINT_URL, or else at Amazon's endpoint of the region.
func (s Settings) objectURL(bucket, key string) (*url.URL, error) {
	if !regionName.MatchString(s.region()) {
		return nil, failure.New(failure.Invalid, "AWS_REGION is no region: write it as eu-central-1 is written")
	}
	endpoint := s.Getenv("AWS_ENDPOINT_URL")
	if endpoint == "" {
		return amazon(bucket, key, s.region()), nil
	}
	base, err := url.Parse(endpoint)
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, failure.New(failure.Invalid, "AWS_ENDPOINT_URL is no URL of a server: write https://host:port")
	}
	switch style := s.Getenv("AWS_S3_ADDRESSING_STYLE"); {
	case style == "" || style == "path":
		return object(base, "/"+bucket+"/"+key), nil
	case style != "virtual":
		return nil, failure.New(failure.Invalid, "AWS_S3_ADDRESSING_STYLE is neither path nor virtual: correct it")
	case !dnsName.MatchString(bucket):
		return nil, failure.New(failure.Invalid, "the bucket cannot be part of a host name, as AWS_S3_ADDRESSING_STYLE says: remove it")
	}
	base.Host = bucket + "." + base.Host
	return object(base, "/"+key), nil
}

func amazon(bucket, key, region string) *url.URL {
	host := "s3." + region + ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		host += ".cn"
	}
	if dnsName.MatchString(bucket) {
		return object(&url.URL{Scheme: "https", Host: bucket + "." + host}, "/"+key)
	}
	return object(&url.URL{Scheme: "https", Host: host}, "/"+bucket+"/"+key)
}

func object(base *url.URL, path string) *url.URL {
	path = strings.TrimSuffix(base.Path, "/") + path
	return &url.URL{Scheme: strings.ToLower(base.Scheme), Host: base.Host, Path: path, RawPath: escape(path)}
}

// escape escapes a path as signatures of version 4 need it: every byte but letters, digits and -._~/ is escaped.
func escape(path string) string {
	escaped := url.QueryEscape(path)
	return strings.NewReplacer("+", "%20", "%2F", "/", "%7E", "~").Replace(escaped)
}

func (s Settings) region() string {
	if region := s.Getenv("AWS_REGION"); region != "" {
		return region
	}
	return defaultRegion
}

// signature returns how requests are signed with the credentials of the environment; nil is not at all.
func (s Settings) signature() (func(*http.Request) error, error) {
	credentials := aws.Credentials{
		AccessKeyID: s.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: s.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: s.Getenv("AWS_SESSION_TOKEN"),
	}
	if credentials.AccessKeyID == "" && credentials.SecretAccessKey == "" {
		return nil, nil
	}
	if !credentials.HasKeys() {
		return nil, failure.New(failure.Invalid, "the Secret of spec.model.credentials has one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: add the other")
	}
	for _, value := range []string{credentials.AccessKeyID, credentials.SecretAccessKey, credentials.SessionToken} {
		if _, err := header(value); err != nil {
			return nil, err
		}
	}
	signer := v4.NewSigner(func(options *v4.SignerOptions) { options.DisableURIPathEscaping = true })
	return func(request *http.Request) error {
		request.Header.Set("X-Amz-Content-Sha256", emptyHash)
		return signer.SignHTTP(request.Context(), credentials, request, emptyHash, "s3", s.region(), time.Now())
	}, nil
}

// s3Error is the body of an S3 server's refusal.
type s3Error struct {
	Code   string `xml:"Code"`
	Region string `xml:"Region"`
}

func explainS3(answer download.Answer) (detail, wayOut string) {
	var body s3Error
	_ = xml.Unmarshal(answer.Body, &body)
	region := body.Region
	if region == "" && answer.Status != http.StatusNotFound {
		region = answer.Header.Get("X-Amz-Bucket-Region")
	}
	switch {
	case region != "" && (answer.Status == http.StatusBadRequest || answer.Status/100 == 3):
		return body.Code, "set AWS_REGION to " + failure.Quote(region) + " in the Secret of spec.model.credentials"
	case answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden:
		return body.Code, "check the keys AWS_* of the Secret of spec.model.credentials, and that they may read the object"
	case answer.Status == http.StatusNotFound:
		return body.Code, "check the bucket and the key in spec.model.uri, and AWS_ENDPOINT_URL"
	}
	return body.Code, ""
}
