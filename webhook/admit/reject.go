// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"errors"
	"net/http"
	"os"
)

// rejection is an answer below the level of admission: an HTTP status and a
// sentence. client-go, and so the API server, shows the sentence to its caller
// because it is plain text.
type rejection struct {
	code int
	text string
}

func (r *rejection) Error() string { return r.text }

var (
	errMethod      = &rejection{http.StatusMethodNotAllowed, "an AdmissionReview comes by POST"}
	errContentType = &rejection{http.StatusUnsupportedMediaType, "an AdmissionReview comes as application/json"}
	errTooLarge    = &rejection{http.StatusRequestEntityTooLarge, "the AdmissionReview is larger than this server reads"}
	errSlow        = &rejection{http.StatusRequestTimeout, "the AdmissionReview did not arrive in time"}
	errBusy        = &rejection{http.StatusServiceUnavailable, "as many admission requests as this server takes at once are in flight"}
)

// unreadable is the rejection for a body that could not be read.
func unreadable(err error) error {
	if known := new(rejection); errors.As(err, &known) {
		return known
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSlow
	}
	return &rejection{http.StatusBadRequest, "reading the AdmissionReview: " + err.Error()}
}

func reject(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if known := new(rejection); errors.As(err, &known) {
		code = known.code
	}
	switch code {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusServiceUnavailable:
		// client-go repeats a request, a POST too, when it is told when.
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, err.Error(), code)
}
