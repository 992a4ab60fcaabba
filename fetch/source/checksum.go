// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha1" //nolint:gosec // S3 has it as one of its checksums.
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
)

// theBucket is who publishes the checksums and the sizes of objects.
const theBucket = "the bucket"

// checksums are those that S3 may have of a whole object, the strongest first.
var checksums = []struct {
	name, header string
	hash         func() hash.Hash
}{
	{"SHA-256", "Sha256", sha256.New},
	{"CRC-64/NVME", "Crc64nvme", func() hash.Hash { return crc64.New(nvme) }},
	{"CRC-32C", "Crc32c", func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }},
	{"CRC-32", "Crc32", func() hash.Hash { return crc32.NewIEEE() }},
	{"SHA-1", "Sha1", sha1.New},
}

// checksum returns what an answer has of the whole object. That of its parts verifies nothing.
func checksum(header http.Header) download.Hash {
	for _, each := range checksums {
		sum, err := base64.StdEncoding.DecodeString(header.Get("X-Amz-Checksum-" + each.header))
		if err == nil && len(sum) == each.hash().Size() && header.Get("X-Amz-Checksum-Type") != string(types.ChecksumTypeComposite) {
			return download.Hash{Name: "the checksum " + each.name, Field: theBucket, Want: hex.EncodeToString(sum), New: each.hash}
		}
	}
	return download.Hash{Field: theBucket}
}

// nvme is the table of CRC-64/NVME, with the polynomial in reversed bits.
var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)
