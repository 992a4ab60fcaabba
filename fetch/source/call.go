// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

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

// ask makes a call whose answer is no file, with the retries of the Downloader.
func (b bucket) ask(ctx context.Context, key string, invoke func(context.Context, func(*s3.Options)) error) (http.Header, error) {
	item := b.item(key, "")
	item.Open = func(ctx context.Context, _ http.Header) (*http.Response, error) {
		return b.call(false, func(sending func(*s3.Options)) error { return invoke(ctx, sending) })
	}
	_, header, err := b.d.Read(ctx, item, maxAnswer)
	return header, err
}
