// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// maxToken bounds the token of a service account in bytes.
const maxToken = 64 << 10

// credentials returns where the keys of S3 come from: the Secret, the role of the service account (IRSA), or EKS Pod Identity, and
// nothing else. The SDK's own chain would execute programs, and ask the metadata service of the node.
func (s Settings) credentials(ctx context.Context, d *download.Downloader) (aws.CredentialsProvider, error) {
	id, key, token := s.Getenv("AWS_ACCESS_KEY_ID"), s.Getenv("AWS_SECRET_ACCESS_KEY"), s.Getenv("AWS_SESSION_TOKEN")
	for _, value := range []string{id, key, token} {
		if err := checkHeader(value); err != nil {
			return nil, err
		}
	}
	role, file, agent := s.Getenv("AWS_ROLE_ARN"), s.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), s.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	switch {
	case id != "" && key != "":
		return credentials.NewStaticCredentialsProvider(id, key, token), nil
	case id != "" || key != "":
		return nil, failure.New(failure.Invalid, "the Secret of spec.model.credentials has one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: add the other")
	case role != "" && file != "":
		return s.webIdentity(ctx, role, file, d)
	case role != "" || file != "":
		return nil, failure.New(failure.Invalid, "one of AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE is set: set both, or use a service account with a role")
	case agent != "":
		return s.podIdentity(agent, d)
	}
	return aws.AnonymousCredentials{}, nil
}

// webIdentity exchanges the token of the service account at STS for keys of its role.
func (s Settings) webIdentity(ctx context.Context, role, file string, d *download.Downloader) (aws.CredentialsProvider, error) {
	region, err := s.region()
	if err != nil {
		return nil, err
	}
	server, err := s.server("AWS_ENDPOINT_URL_STS")
	if err != nil {
		return nil, err
	}
	endpoint, err := sts.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, sts.EndpointParameters{Region: &region, Endpoint: server})
	if err != nil {
		return nil, failure.New(failure.Invalid, "STS has no address: check AWS_ENDPOINT_URL_STS and AWS_REGION")
	}
	base, err := s.Mirrors.URL(&endpoint.URI)
	if err != nil {
		return nil, err
	}
	client := sts.New(sts.Options{
		Region: region, BaseEndpoint: aws.String(base.String()), HTTPClient: sender{d: d}, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{},
	})
	provider := stscreds.NewWebIdentityRoleProvider(client, role, tokenFile{s, file}, func(o *stscreds.WebIdentityRoleOptions) {
		o.RoleSessionName = s.Getenv("AWS_ROLE_SESSION_NAME")
	})
	return s.identity(provider, "STS", "check AWS_ROLE_ARN, and that the role trusts the issuer, the namespace and the service account"), nil
}

// podIdentity asks the agent of EKS Pod Identity on the node, by its one address.
func (s Settings) podIdentity(agent string, d *download.Downloader) (aws.CredentialsProvider, error) {
	target, err := url.Parse(agent)
	if err != nil {
		target = &url.URL{}
	}
	if err := guard.CheckAgent(target); err != nil {
		return nil, err
	}
	file := s.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
	if file == "" {
		return nil, failure.New(failure.Invalid, "AWS_CONTAINER_CREDENTIALS_FULL_URI is set without AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: EKS Pod Identity sets both")
	}
	provider := endpointcreds.New(target.String(), func(o *endpointcreds.Options) {
		o.HTTPClient, o.Retryer, o.AuthorizationTokenProvider = sender{d: d, agent: true}, aws.NopRetryer{}, tokenFile{s, file}
	})
	return s.identity(provider, "the agent of EKS Pod Identity", "check the pod identity association of the service account"), nil
}

// tokenFile reads the token of a service account, anew each time, because the kubelet renews it.
type tokenFile struct {
	settings Settings
	path     string
}

// GetToken is what the provider of containers calls.
func (t tokenFile) GetToken() (string, error) {
	file, err := os.Open(t.path)
	if err != nil {
		return "", failure.New(failure.Invalid, "the token of the service account cannot be read: check AWS_WEB_IDENTITY_TOKEN_FILE, or AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, and fsGroup of the pod")
	}
	defer file.Close() //nolint:errcheck // It was only read.
	content, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	token := strings.TrimSpace(string(content))
	if err != nil || token == "" || len(token) > maxToken {
		return "", failure.New(failure.Invalid, "the file of the service account's token has no token: check AWS_WEB_IDENTITY_TOKEN_FILE, or AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
	}
	t.settings.Hide(token)
	return token, nil
}

// GetIdentityToken is what the provider of web identities calls.
func (t tokenFile) GetIdentityToken() ([]byte, error) {
	token, err := t.GetToken()
	return []byte(token), err
}

// errorCode is how Amazon writes codes of errors.
var errorCode = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

// identity returns a provider that keeps the keys until they expire, and tells its errors without the server's words.
func (s Settings) identity(provider aws.CredentialsProvider, who, wayOut string) aws.CredentialsProvider {
	return aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		keys, err := provider.Retrieve(ctx)
		s.Hide(keys.SecretAccessKey, keys.SessionToken)
		return keys, toldIdentity(err, who, wayOut)
	}))
}

// passing knows the refusals that the SDKs send again: those of all services, and two of STS, which
// asks the issuer of the token itself.
var passing = retry.AddWithErrorCodes(retry.NewStandard(), "IDPCommunicationError", "InvalidIdentityToken")

// toldIdentity returns a *smithyhttp.RequestSendError for what another attempt may cure.
func toldIdentity(err error, who, wayOut string) error {
	if _, ok := errors.AsType[*failure.Failure](err); ok || err == nil {
		return err
	}
	told := fmt.Errorf("%s does not answer as it should", who)
	if sent, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		told = fmt.Errorf("%s: %w", who, sent.Err)
	} else if response, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); ok {
		status := response.HTTPStatusCode()
		shown := http.StatusText(status)
		if api, ok := errors.AsType[smithy.APIError](err); ok && errorCode.MatchString(api.ErrorCode()) {
			shown += " (" + api.ErrorCode() + ")"
		}
		told = fmt.Errorf("%s: %d %s", who, status, shown)
		if status < http.StatusInternalServerError && status != http.StatusTooManyRequests && !passing.IsErrorRetryable(err) {
			return failure.New(failure.Denied, "%w: %s", told, wayOut)
		}
	}
	return &smithyhttp.RequestSendError{Err: told}
}
