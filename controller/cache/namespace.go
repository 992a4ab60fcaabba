// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// A cache that is limited to namespaces has an informer for each kind in each of them.
// controller-runtime does not tell the function that creates an informer the namespace, so it
// is taken from the request that controller-runtime's own lister would send. A transport
// records that request and does not send it.

// pathKey is the key of a *string in the context of a request that is recorded, not sent.
type pathKey struct{}

var errRecorded = errors.New("the request was recorded, not sent")

// recorder is a transport that records the path of some requests.
type recorder struct{ http.RoundTripper }

// RoundTrip sends a request, or records its path.
func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	if path, ok := request.Context().Value(pathKey{}).(*string); ok {
		*path = request.URL.Path
		return nil, errRecorded
	}
	return r.RoundTripper.RoundTrip(request)
}

// recording returns a client that shares its connections with the given one.
func recording(client *http.Client) *http.Client {
	copied := *client
	if copied.Transport == nil {
		copied.Transport = http.DefaultTransport
	}
	copied.Transport = recorder{copied.Transport}
	return &copied
}

// namespaceOf returns the namespace whose objects a ListerWatcher lists, "" for all. Its client
// is a recording one.
func namespaceOf(lw toolscache.ListerWatcher) (string, error) {
	var path string
	ctx := context.WithValue(context.Background(), pathKey{}, &path)
	_, err := toolscache.ToListerWatcherWithContext(lw).ListWithContext(ctx, metav1.ListOptions{})
	if !errors.Is(err, errRecorded) {
		return "", fmt.Errorf("finding the namespace of an informer: %w", err)
	}
	_, rest, found := strings.Cut(path, "/namespaces/")
	if !found {
		return "", nil
	}
	namespace, _, _ := strings.Cut(rest, "/")
	return namespace, nil
}
