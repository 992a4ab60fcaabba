// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/hex"
	"hash/crc64"
	"testing"
)

// The check value of CRC-64/NVME is that of the catalogue of Williams.
func TestCRC64NVME(t *testing.T) {
	sum := crc64.New(nvme)
	sum.Write([]byte("123456789"))
	if got := hex.EncodeToString(sum.Sum(nil)); got != "ae8b14860a799888" {
		t.Error(got)
	}
}
