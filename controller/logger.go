// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/go-logr/logr"
)

// lateSink adds the values of a logger to a line when one is written. Each reconcile
// makes a logger with the names of its object and writes nothing to it; zap encodes
// such values at once, which was a twenty-fifth of what a reconcile costs.
type lateSink struct {
	logr.LogSink
	values []any
}

// late is a logger that writes what the given one would. It is one call deeper.
func late(logger logr.Logger) logr.Logger {
	return logger.WithSink(lateSink{LogSink: logger.GetSink()}.WithCallDepth(1))
}

// Init has nothing to do: the sink has been initialised by the logger it is from.
func (lateSink) Init(logr.RuntimeInfo) {}

func (s lateSink) Info(level int, msg string, values ...any) {
	s.LogSink.Info(level, msg, slices.Concat(s.values, values)...)
}

func (s lateSink) Error(err error, msg string, values ...any) {
	s.LogSink.Error(err, msg, slices.Concat(s.values, values)...)
}

func (s lateSink) WithValues(values ...any) logr.LogSink {
	return lateSink{s.LogSink, slices.Concat(s.values, values)}
}

func (s lateSink) WithName(name string) logr.LogSink {
	return lateSink{s.LogSink.WithName(name), s.values}
}

func (s lateSink) WithCallDepth(depth int) logr.LogSink {
	if deeper, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return lateSink{deeper.WithCallDepth(depth), s.values}
	}
	return s
}
