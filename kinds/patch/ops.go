// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Ops is a list of operations, in the order in which they were recorded, held as
// the JSON that is sent. The zero value is ready for use; a nil *Ops records
// nothing. It is for one goroutine at a time, and must not be copied once
// it has recorded something.
type Ops struct {
	// buf is "[", then the operations with commas between them. The bracket that
	// closes the list is added by JSON.
	buf   []byte
	paths []string
	err   error
	// encoder writes into buf. It is kept because it is the one allocation that
	// marshalling a value would otherwise cost.
	encoder *json.Encoder
}

// JSON returns the operations as a JSON patch (RFC 6902), nil if there are none.
// The slice is part of Ops: it holds until the next call on it.
func (o *Ops) JSON() []byte {
	if o.Len() == 0 {
		return nil
	}
	return append(o.buf, ']')
}

// Len returns the number of operations.
func (o *Ops) Len() int {
	if o == nil {
		return 0
	}
	return len(o.paths)
}

// Err returns the first error of marshalling a value. That operation is missing
// from the list, so the list should not be sent.
func (o *Ops) Err() error {
	if o == nil {
		return nil
	}
	return o.err
}

// Reset forgets all operations and keeps the memory for the next ones.
func (o *Ops) Reset() {
	clear(o.paths)
	o.buf, o.paths, o.err = o.buf[:0], o.paths[:0], nil
}

// Cap returns the memory in bytes that Reset would keep for the list.
func (o *Ops) Cap() int { return cap(o.buf) }

// add records that the value of path is what field points to. The pointer, and
// not the value, goes to the encoder: a pointer in an interface costs no memory.
func (o *Ops) add(path string, field any) {
	start := o.begin("add", path)
	o.buf = append(o.buf, `,"value":`...)
	if buf, ok := appendPlain(o.buf, field); ok {
		o.buf = append(buf, '}')
		return
	}
	if o.encoder == nil {
		o.encoder = json.NewEncoder((*sink)(o))
		o.encoder.SetEscapeHTML(false)
	}
	if err := o.encoder.Encode(field); err != nil {
		o.undo(start, fmt.Errorf("marshalling the value of %s: %w", path, err))
		return
	}
	// The encoder ends each value with a newline.
	o.buf = append(o.buf[:len(o.buf)-1], '}')
}

// addEncoded is add for a value that is JSON already.
func (o *Ops) addEncoded(path, value string) {
	o.begin("add", path)
	o.buf = append(o.buf, `,"value":`...)
	o.buf = append(append(o.buf, value...), '}')
}

// appendPlain appends the value that field points to, if it is one of the types that
// most defaults have and that the encoder takes several allocations for.
func appendPlain(b []byte, field any) ([]byte, bool) {
	switch f := field.(type) {
	case **int32:
		if *f != nil {
			return strconv.AppendInt(b, int64(**f), 10), true
		}
	case **intstr.IntOrString:
		if *f != nil && (*f).Type == intstr.Int {
			return strconv.AppendInt(b, int64((*f).IntVal), 10), true
		}
		if *f != nil {
			return appendString(b, (*f).StrVal), true
		}
	}
	return b, false
}

func (o *Ops) remove(path string) {
	o.begin("remove", path)
	o.buf = append(o.buf, '}')
}

// begin opens an operation and returns where it starts.
func (o *Ops) begin(op, path string) (start int) {
	start = len(o.buf)
	if start == 0 {
		o.buf = append(o.buf, '[')
	} else {
		o.buf = append(o.buf, ',')
	}
	o.buf = appendOp(o.buf, op, path)
	o.paths = append(o.paths, path)
	return start
}

func (o *Ops) undo(start int, err error) {
	o.buf = o.buf[:start]
	o.paths = o.paths[:len(o.paths)-1]
	if o.err == nil {
		o.err = err
	}
}

// makeFirst inserts operations that make empty objects before all others.
func (o *Ops) makeFirst(paths []string) {
	var ops []byte
	for _, path := range paths {
		ops = appendOp(ops, "add", path)
		ops = append(ops, `,"value":{}},`...)
	}
	o.buf = slices.Insert(o.buf, len("["), ops...)
	o.paths = slices.Insert(o.paths, 0, paths...)
}

func appendOp(b []byte, op, path string) []byte {
	b = append(b, `{"op":"`...)
	b = append(b, op...)
	b = append(b, `","path":`...)
	return appendString(b, path)
}

// appendString appends s as JSON. Paths are constants with an index but for map
// keys, so nearly all of them need no escape.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // A string is always marshalled.
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// sink lets the encoder write into Ops without Ops being a Writer to others.
type sink Ops

func (s *sink) Write(p []byte) (int, error) {
	s.buf = append(s.buf, p...)
	return len(p), nil
}
