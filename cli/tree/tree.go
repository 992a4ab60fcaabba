// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree draws the state of an object: its conditions, its children and their pods, the
// problems in its status, and its newest events.
package tree

import (
	"io"
	"strings"
)

// Node is a line with others below it.
type Node struct {
	Text string
	Sub  []*Node
}

// Add adds a line below the node, if it has a text.
func (n *Node) Add(text string) *Node {
	sub := &Node{Text: text}
	if text != "" {
		n.Sub = append(n.Sub, sub)
	}
	return sub
}

// Write draws a node and those below it.
func (n *Node) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString(n.Text + "\n")
	n.draw(&b, "")
	_, err := io.WriteString(w, b.String())
	return err
}

func (n *Node) draw(b *strings.Builder, indent string) {
	for i, sub := range n.Sub {
		branch, below := "├── ", "│   "
		if i == len(n.Sub)-1 {
			branch, below = "└── ", "    "
		}
		b.WriteString(indent + branch + sub.Text + "\n")
		sub.draw(b, indent+below)
	}
}
