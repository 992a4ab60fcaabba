// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"flag"
	"io"
	"strings"
	"testing"
)

func parse(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	o, flags := &Options{}, flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	return o, o.Validate()
}

func TestEndpoint(t *testing.T) {
	for value, want := range map[string]string{
		"http://c:4318":          "http://c:4318/v1/traces",
		"http://c:4318/":         "http://c:4318/v1/traces",
		"https://c.example/otlp": "https://c.example/otlp/v1/traces",
		"http://[fd00::1]:4318":  "http://[fd00::1]:4318/v1/traces",
	} {
		o, err := parse(t, "--tracing-endpoint="+value)
		if err != nil || o.endpoint.String() != want {
			t.Errorf("%s: %v, %v, want %s", value, o.endpoint, err, want)
		}
		if got := o.rate(); got != 1 {
			t.Errorf("%s: the rate is %v, want 1", value, got)
		}
	}
}

func TestRate(t *testing.T) {
	for value, want := range map[string]float64{"0": 0, "100": 0.0001, "1000000": 1} {
		o, err := parse(t, "--tracing-endpoint=http://c", "--tracing-sampling-rate-per-million="+value)
		if err != nil || o.rate() != want {
			t.Errorf("%s: %v, %v, want %v", value, o.rate(), err, want)
		}
	}
}

func TestFlagsThatAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--tracing-endpoint=collector:4318":         "begins with http",
		"--tracing-endpoint=grpc://collector:4317":  "begins with http",
		"--tracing-endpoint=http://":                "has a host",
		"--tracing-endpoint=http://:4318":           "has a host",
		"--tracing-endpoint=http://user:pw@c":       "without a user",
		"--tracing-endpoint=http://c?token=1":       "without a user",
		"--tracing-endpoint=http://c c":             "invalid character",
		"--tracing-sampling-rate-per-million=10":    "no effect without --tracing-endpoint",
		"--tracing-sampling-rate-per-million=-1":    "from 0 to 1000000",
		"--tracing-sampling-rate-per-million=0.5":   "from 0 to 1000000",
		"--tracing-sampling-rate-per-million=1e6":   "from 0 to 1000000",
		"--tracing-sampling-rate-per-million=1e999": "from 0 to 1000000",
	} {
		if _, err := parse(t, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that contains %q", args, err, want)
		}
	}
}
