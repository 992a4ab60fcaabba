// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// load decodes a file of at most size bytes that save has written. Whatever other pods put there, it neither waits nor grows.
func load(root *os.Root, name string, size int64, into any) error {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // A FIFO without a writer ends at once.
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // It was only read.
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > size {
		return errors.Join(err, fs.ErrInvalid)
	}
	return json.NewDecoder(io.LimitReader(file, size)).Decode(into)
}

// save makes a file have a value as JSON: the old or the new one, whenever the process ends.
func save(root *os.Root, name string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	next := name + ".next"
	if err := root.RemoveAll(next); err != nil {
		return err
	}
	if err := root.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return root.Rename(next, name)
}
