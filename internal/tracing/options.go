// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strconv"
)

const (
	endpointFlag = "tracing-endpoint"
	rateFlag     = "tracing-sampling-rate-per-million"
	// million is the default sampling rate: all traces.
	million = 1_000_000
)

// Options are the flags of tracing, which both processes have. The zero value is off.
type Options struct {
	// endpoint is where spans are sent, with the path of OTLP; nil if tracing is off.
	endpoint *url.URL
	// ratePerMillion is how many of a million traces that begin in this process are recorded;
	// nil if the flag is not set.
	ratePerMillion *int
}

// AddFlags adds the flags. A value that cannot be used is an error when the flags are parsed.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.Func(endpointFlag, "URL of an OpenTelemetry collector, such as http://collector.observability.svc:4318, to which spans are sent by OTLP over HTTP; "+
		"/v1/traces is appended to its path. Tracing is off if it is empty", o.setEndpoint)
	flags.Func(rateFlag, "how many of a million traces are recorded, if the API server has not decided about that; all by default. 0 records only those of which the API server has decided it", o.setRate)
}

// Validate returns an error for a flag that would have no effect.
func (o *Options) Validate() error {
	if o.ratePerMillion != nil && o.endpoint == nil {
		return errors.New("--" + rateFlag + " has no effect without --" + endpointFlag + ": set both, or none")
	}
	return nil
}

func (o *Options) setEndpoint(value string) error {
	o.endpoint = nil
	if value == "" {
		return nil
	}
	endpoint, err := url.Parse(value)
	switch {
	case err != nil:
		return err
	case endpoint.Scheme != "http" && endpoint.Scheme != "https" || endpoint.Hostname() == "":
		return errors.New("must be a URL that begins with http:// or https://, and has a host")
	case endpoint.User != nil || endpoint.RawQuery != "" || endpoint.Fragment != "":
		return errors.New("must be a URL without a user, a query and a fragment")
	}
	o.endpoint = endpoint.JoinPath("v1", "traces")
	return nil
}

func (o *Options) setRate(value string) error {
	rate, err := strconv.Atoi(value)
	if err != nil || rate < 0 || rate > million {
		return fmt.Errorf("must be a number from 0 to %d", million)
	}
	o.ratePerMillion = &rate
	return nil
}

// rate returns the fraction of the traces that begin in this process which are recorded.
func (o *Options) rate() float64 {
	if o.ratePerMillion == nil {
		return 1
	}
	return float64(*o.ratePerMillion) / million
}
