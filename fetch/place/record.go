// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place

const (
	// maxRecord bounds a record in bytes, and maxSources the sources in it.
	maxRecord  = 64 << 10
	maxSources = 16
)

// Record is what is known of a complete model. It is beside the model's directory, in a file of the volume.
type Record struct {
	// Sources say what the bytes were fetched from, or verified against.
	Sources []string `json:"sources,omitempty"`
	// Digest and Bytes are what the termination message says of it.
	Digest string `json:"digest,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
}

func (v *Volume) recordName() string { return ".model-" + v.name }

// Recorded returns the record of the model; the zero Record is none, such as of a model that an earlier release has fetched.
func (v *Volume) Recorded() (record Record) {
	if err := load(v.root, v.recordName(), maxRecord, &record); err != nil {
		return Record{}
	}
	return record
}

// Record replaces the record of the model. Without it, a later start has to verify the files again.
func (v *Volume) Record(record Record) {
	record.Sources = record.Sources[max(0, len(record.Sources)-maxSources):]
	if err := save(v.root, v.recordName(), record); err != nil {
		v.log.Line("what the model is cannot be recorded: %v", err)
	}
}
