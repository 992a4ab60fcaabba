// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"net/http"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

// Refusals of STS that its SDK sends again are sent again; the others are the user's.
func TestTheRefusalsOfSTS(t *testing.T) {
	for code, again := range map[string]bool{
		"Throttling": true, "ThrottlingException": true, "RequestTimeout": true, "IDPCommunicationError": true, "InvalidIdentityToken": true,
		"AccessDenied": false, "ExpiredTokenException": false, "MalformedPolicyDocument": false,
	} {
		for _, status := range []int{400, 403} {
			err := error(&smithyhttp.ResponseError{
				Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: &smithy.GenericAPIError{Code: code, Message: "x"},
			})
			told := toldIdentity(err, "STS", "check the role")
			_, sent := errors.AsType[*smithyhttp.RequestSendError](told)
			if sent != again || !again && failure.Of(told).Word != failure.Denied {
				t.Errorf("%d %s: %v", status, code, told)
			}
		}
	}
}
