// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // S3 has it as one of its checksums.
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	smithyhttp "github.com/aws/smithy-go/transport/http"

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

// signer signs the host and what is of S3, which is all that servers need. Proxies, and the front
// end of Google, change other headers, such as Accept-Encoding.
type signer struct{}

func (signer) SignHTTP(ctx context.Context, keys aws.Credentials, request *http.Request, hash, service, region string, now time.Time, options ...func(*v4.SignerOptions)) error {
	all := request.Header
	request.Header = http.Header{}
	for name, values := range all {
		if strings.HasPrefix(name, "X-Amz-") {
			request.Header[name] = values
		}
	}
	options = append(options, func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	err := v4.NewSigner().SignHTTP(ctx, keys, request, hash, service, region, now, options...)
	maps.Copy(all, request.Header)
	request.Header = all
	return err
}

// sender sends what an SDK has signed, and reads what is no file.
type sender struct {
	d                  *download.Downloader
	plain, agent, file bool
	// answer gets the answer, which the Downloader reads as well; nil is none.
	answer *http.Response
}

func (s sender) Do(request *http.Request) (*http.Response, error) {
	client, ok := s.d.Client.(*guard.Client)
	if !ok {
		return nil, failure.New(failure.Refused, "no network")
	}
	response, err := client.Send(request, s.plain, s.agent)
	if err != nil {
		return nil, err
	}
	answer := cmp.Or(s.answer, &http.Response{})
	*answer = *response
	if s.file && response.StatusCode < 300 {
		return response, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	_ = response.Body.Close()
	response.Body, answer.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	return response, err
}

// call makes a call of the SDK with an option, and returns the server's answer to it, as the Downloader judges it.
func (b bucket) call(file bool, invoke func(func(*s3.Options)) error) (*http.Response, error) {
	var answer http.Response
	err := invoke(func(o *s3.Options) {
		o.HTTPClient = sender{d: b.d, plain: b.settings.SHA256 != "", file: file, answer: &answer}
	})
	if f, ok := errors.AsType[*failure.Failure](err); ok {
		return nil, f
	}
	if sent, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return nil, sent.Err
	}
	if err != nil && answer.StatusCode < 300 {
		return nil, failure.New(failure.Invalid, "the bucket's server answers with something that is not of S3: check AWS_ENDPOINT_URL")
	}
	return &answer, nil
}

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

// ask makes a call whose answer is no file, with the retries of the Downloader.
func (b bucket) ask(ctx context.Context, key string, invoke func(context.Context, func(*s3.Options)) error) (http.Header, error) {
	item := b.item(key, "")
	item.Open = func(ctx context.Context, _ http.Header) (*http.Response, error) {
		return b.call(false, func(sending func(*s3.Options)) error { return invoke(ctx, sending) })
	}
	_, header, err := b.d.Read(ctx, item, maxAnswer)
	return header, err
}

// folder returns the objects below a key.
func (b bucket) folder(ctx context.Context, key string) (Model, error) {
	input := &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &key}
	empty := "the bucket has no object below " + key + ": check spec.model.uri"
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
	if !list.selection.Selects(name) {
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

// theBucket is who publishes the checksums and the sizes of objects.
const theBucket = "the bucket"

// checksums are those that S3 may have of a whole object, the strongest first.
var checksums = []struct {
	name, header string
	hash         func() hash.Hash
}{
	{"SHA-256", "Sha256", sha256.New},
	{"CRC-64/NVME", "Crc64nvme", func() hash.Hash { return crc64.New(nvme) }},
	{"CRC-32C", "Crc32c", func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }},
	{"CRC-32", "Crc32", func() hash.Hash { return crc32.NewIEEE() }},
	{"SHA-1", "Sha1", sha1.New},
}

// checksum returns what an answer has of the whole object. That of its parts verifies nothing.
func checksum(header http.Header) download.Hash {
	for _, each := range checksums {
		sum, err := base64.StdEncoding.DecodeString(header.Get("X-Amz-Checksum-" + each.header))
		if err == nil && len(sum) == each.hash().Size() && header.Get("X-Amz-Checksum-Type") != string(types.ChecksumTypeComposite) {
			return download.Hash{Name: "the checksum " + each.name, Field: theBucket, Want: hex.EncodeToString(sum), New: each.hash}
		}
	}
	return download.Hash{Field: theBucket}
}

// nvme is the table of CRC-64/NVME, with the polynomial in reversed bits.
var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

// s3Error is the body of an S3 server's refusal.
type s3Error struct {
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
	Region  string `xml:"Region"`
}

const replaced = "the object was replaced while it was fetched: the next start fetches the new one"

// waysOut are those of refusals that have another cause than their status says, by the beginnings
// of their codes or a part of their messages.
var waysOut = []struct{ code, message, wayOut string }{
	{code: "ExpiredToken", wayOut: "the temporary credentials have expired: write new ones into the Secret of spec.model.credentials, all three of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"},
	{code: "TokenRefreshRequired", wayOut: "the temporary credentials have expired: write new ones into the Secret of spec.model.credentials"},
	{code: "InvalidToken", wayOut: "AWS_SESSION_TOKEN does not belong to the other keys of the Secret of spec.model.credentials: write all three anew"},
	{code: "RequestTimeTooSkewed", wayOut: "the clock of the node is wrong: correct it"},
	{code: "InvalidObjectState", wayOut: "the object is archived: restore it, or copy it to a storage class that is read at once"},
	{code: "KMS.", wayOut: aboutKey},
	{message: "kms:Decrypt", wayOut: aboutKey},
	{message: "Server Side Encryption", wayOut: "the object is encrypted by a key that its owner sends with each request (SSE-C), which is not possible here: copy it without"},
}

const aboutKey = "the object is encrypted by a key of KMS: enable the key, and allow kms:Decrypt for it to the identity that fetches"

// explain returns the code of a refusal, and its way out.
func (b bucket) explain(answer *http.Response, content []byte) (detail, wayOut string) {
	var body s3Error
	_ = xml.Unmarshal(content, &body)
	for _, known := range waysOut {
		if strings.HasPrefix(body.Code, known.code) && strings.Contains(body.Message, known.message) {
			return body.Code, known.wayOut
		}
	}
	status, region := answer.StatusCode, body.Region
	if region == "" && status != http.StatusNotFound {
		region = answer.Header.Get("X-Amz-Bucket-Region")
	}
	if status == http.StatusBadRequest || status/100 == 3 {
		wayOut = b.elsewhere(status, region)
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		wayOut = "check the keys AWS_* of the Secret of spec.model.credentials, and that they may read the object"
	case http.StatusPreconditionFailed:
		wayOut = replaced
	case http.StatusNotFound:
		wayOut = "check the bucket and the key in spec.model.uri, and AWS_ENDPOINT_URL"
	}
	return body.Code, wayOut
}

// elsewhere returns the way out where a server names a region, or redirects.
func (b bucket) elsewhere(status int, region string) string {
	own, _ := b.settings.region() // It was read before.
	switch {
	case status != http.StatusBadRequest && (region == "" || region == own):
		return "the bucket is new, or is at another address: try again in some minutes, or check AWS_REGION and AWS_ENDPOINT_URL"
	case region == own:
		return "the server refuses the region that it names: check AWS_ENDPOINT_URL, and that nothing on the way changes the request"
	case region != "":
		return "set AWS_REGION to " + region + " in the Secret of spec.model.credentials"
	}
	return ""
}
