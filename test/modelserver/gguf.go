// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// The sizes of the language model of GGUF.
const (
	width, heads, hidden = 64, 2, 128
	// alignment is of the weights in a file, in bytes.
	alignment = 32
)

// vocabulary are the words that the language model answers with.
const vocabulary = "a all and any as at be box by can each for from has in is it may model new no node not of on one or pod run server " +
	"so than that the their then this to two until was what when which will with word you"

// The kinds of tokens, as in llama.cpp.
const (
	normal  = 1
	unknown = 2
	control = 3
	byByte  = 6
)

// GGUF returns a language model of the architecture llama, as llama.cpp and Ollama load it
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Its weights are random, the same for
// the same seed on each machine, so it answers with words in a random order.
func GGUF(seed byte) []byte {
	tokens, kinds := tokens()
	file := &gguf{random: rand.NewChaCha8([32]byte{seed})}
	file.key("general.architecture", "llama")
	file.key("general.name", fmt.Sprintf("random-%d", seed))
	file.key("llama.context_length", uint32(2048))
	file.key("llama.embedding_length", uint32(width))
	file.key("llama.block_count", uint32(1))
	file.key("llama.feed_forward_length", uint32(hidden))
	file.key("llama.attention.head_count", uint32(heads))
	file.key("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	file.key("llama.rope.dimension_count", uint32(width/heads))
	file.key("tokenizer.ggml.model", "llama")
	file.key("tokenizer.ggml.tokens", tokens)
	file.key("tokenizer.ggml.scores", make([]float32, len(tokens)))
	file.key("tokenizer.ggml.token_type", kinds)
	file.tensor("token_embd.weight", width, len(tokens))
	for _, name := range []string{"q", "k", "v", "output"} {
		file.tensor("blk.0.attn_"+name+".weight", width, width)
	}
	file.tensor("blk.0.ffn_gate.weight", width, hidden)
	file.tensor("blk.0.ffn_up.weight", width, hidden)
	file.tensor("blk.0.ffn_down.weight", hidden, width)
	for _, name := range []string{"blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"} {
		file.tensor(name+".weight", width)
	}
	file.tensor("output.weight", width, len(tokens))
	// A row of zeros is a token that is not likely: only words, and the end, are.
	output := file.weights.Bytes()[file.weights.Len()-4*width*len(tokens):]
	for i, kind := range kinds {
		if kind != normal && tokens[i] != "</s>" {
			clear(output[4*width*i : 4*width*(i+1)])
		}
	}
	return file.bytes()
}

// tokens returns the vocabulary of a SentencePiece tokenizer: the special tokens at the indices where
// they are by default, each byte, and the words, which begin with a space.
func tokens() (tokens []string, kinds []int32) {
	tokens, kinds = []string{"<unk>", "<s>", "</s>"}, []int32{unknown, control, control}
	for b := range 256 {
		tokens, kinds = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(kinds, byByte)
	}
	for word := range strings.FieldsSeq(vocabulary) {
		tokens, kinds = append(tokens, "\u2581"+word), append(kinds, normal)
	}
	return tokens, kinds
}

// gguf is a file that is being written.
type gguf struct {
	random                     *rand.ChaCha8
	metadata, infos, weights   bytes.Buffer
	metadataCount, tensorCount uint64
}

// put writes values of a fixed size, and strings.
func put(to *bytes.Buffer, values ...any) {
	for _, value := range values {
		if text, ok := value.(string); ok {
			put(to, uint64(len(text)), []byte(text))
			continue
		}
		must(binary.Write(to, binary.LittleEndian, value))
	}
}

// key adds a key with its type and value.
func (f *gguf) key(name string, value any) {
	const ofUint32, ofInt32, ofFloat32, ofText, ofArray = uint32(4), uint32(5), uint32(6), uint32(8), uint32(9)
	f.metadataCount++
	put(&f.metadata, name)
	switch value := value.(type) {
	case uint32:
		put(&f.metadata, ofUint32, value)
	case float32:
		put(&f.metadata, ofFloat32, value)
	case string:
		put(&f.metadata, ofText, value)
	case []int32:
		put(&f.metadata, ofArray, ofInt32, uint64(len(value)), value)
	case []float32:
		put(&f.metadata, ofArray, ofFloat32, uint64(len(value)), value)
	case []string:
		put(&f.metadata, ofArray, ofText, uint64(len(value)))
		for _, text := range value {
			put(&f.metadata, text)
		}
	}
}

// tensor adds weights as float32: random ones between -1 and 1, or ones if there is one dimension, which is that of a norm.
func (f *gguf) tensor(name string, dimensions ...int) {
	f.tensorCount++
	put(&f.infos, name, uint32(len(dimensions)))
	weights := []float32{1}
	for _, size := range dimensions {
		put(&f.infos, uint64(size))
		weights = slices.Repeat(weights, size)
	}
	const asFloat32 = uint32(0)
	put(&f.infos, asFloat32, uint64(f.weights.Len()))
	if len(dimensions) > 1 {
		for i := range weights { // 24 bits, which a float32 has without rounding.
			weights[i] = float32(int64(f.random.Uint64()>>40)-1<<23) / (1 << 23)
		}
	}
	put(&f.weights, weights) // Each size is a multiple of the alignment.
}

func (f *gguf) bytes() []byte {
	out := &bytes.Buffer{}
	put(out, []byte("GGUF"), uint32(3), f.tensorCount, f.metadataCount, f.metadata.Bytes(), f.infos.Bytes())
	put(out, make([]byte, -out.Len()&(alignment-1)), f.weights.Bytes())
	return out.Bytes()
}
