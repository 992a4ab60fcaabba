// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// checkURL returns a URL that is about to be requested with its host as it is connected to. A name is checked when it is resolved, which a
// proxy does where there is one.
func checkURL(target *url.URL, plain bool) (*url.URL, error) {
	switch {
	case target.Scheme == "http" && !plain:
		return nil, failure.New(failure.Refused, "%s is not encrypted: use https://, or set spec.model.sha256 of one file of https://, http:// or s3://", showServer(target))
	case target.Scheme != "http" && target.Scheme != "https":
		return nil, failure.New(failure.Refused, "%s is neither an https:// nor an http:// URL", showServer(target))
	case target.User != nil:
		return nil, failure.New(failure.Invalid, "%s has a user name: put it into the Secret of spec.model.credentials", showServer(target))
	case target.Hostname() == "":
		return nil, failure.New(failure.Invalid, "a URL has no host: write https://host/path")
	}
	checked, err := modeluri.Host(target, false)
	if _, ok := errors.AsType[*modeluri.AddressError](err); ok {
		return nil, failure.New(failure.Refused, "%w", err)
	}
	if err != nil {
		return nil, failure.New(failure.Refused, "%s %w", showServer(target), err)
	}
	return checked, nil
}

// Show returns a URL as it may stand in a log: without user information, query and fragment, which may hold secrets.
func Show(target *url.URL) string {
	shown := url.URL{Scheme: target.Scheme, Host: target.Host, Path: target.Path, RawPath: target.RawPath}
	return shown.String()
}

// showServer returns the server of a URL that another server has chosen: the rest of it may be what that one was sent.
func showServer(target *url.URL) string {
	return Show(&url.URL{Scheme: target.Scheme, Host: target.Host})
}

// server returns the scheme, host and port of a URL.
func server(target *url.URL) string {
	return target.Scheme + "://" + net.JoinHostPort(strings.ToLower(target.Hostname()), port(target))
}

func port(target *url.URL) string {
	if given := target.Port(); given != "" {
		return given
	}
	return map[string]string{"https": "443", "http": "80"}[target.Scheme]
}

// agents are the addresses of the agent of EKS Pod Identity, which gives a pod the credentials of its own service account
// (https://docs.aws.amazon.com/eks/latest/userguide/pod-id-how-it-works.html). The metadata service is at others.
var agents = []netip.Addr{netip.MustParseAddr("169.254.170.23"), netip.MustParseAddr("fd00:ec2::23")}

// CheckAgent refuses every URL but that of the agent.
func CheckAgent(target *url.URL) error {
	addr, err := netip.ParseAddr(target.Hostname())
	if err != nil || !slices.Contains(agents, addr) || target.Scheme != "http" || port(target) != "80" || target.User != nil {
		return failure.New(failure.Refused, "AWS_CONTAINER_CREDENTIALS_FULL_URI is not the agent of EKS Pod Identity: it is http://%s/v1/credentials, or http://[%s]/v1/credentials",
			agents[0], agents[1])
	}
	return nil
}
