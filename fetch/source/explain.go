// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/xml"
	"net/http"
	"strings"
)

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
