// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/unpack"
)

var limits = unpack.Limits{MaxFiles: 100, MaxBytes: 64 << 20, MaxRatio: 1000}

// try unpacks an archive into a directory of its own, beside which nothing may appear.
func try(t testing.TB, format string, archive []byte, limits unpack.Limits) (string, unpack.Unpacked, error) {
	t.Helper()
	outer := t.TempDir()
	inner := filepath.Join(outer, "a", "model")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	root, err := os.OpenRoot(inner)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	unpacked, err := unpack.Archive("x."+format, file, int64(len(archive)), root, limits)
	checkOutside(t, outer)
	return inner, unpacked, err
}

func checkOutside(t testing.TB, outer string) {
	t.Helper()
	for _, directory := range []string{outer, filepath.Join(outer, "a")} {
		entries, err := os.ReadDir(directory)
		if err != nil || len(entries) != 1 || !entries[0].IsDir() {
			t.Fatalf("something was written outside: %v %v", entries, err)
		}
	}
}

// entry is an entry of a test's archive.
type entry struct {
	name, body string
	header     tar.Header
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, each := range entries {
		header := each.header
		header.Name = each.name
		if header.Typeflag == 0 {
			header.Typeflag = tar.TypeReg
		}
		if header.Typeflag == tar.TypeReg {
			header.Size = int64(len(each.body))
		}
		if header.Mode == 0 {
			header.Mode = 0o600
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			header = tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: each.name, PAXRecords: map[string]string{"comment": each.body}}
		}
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, each.body[:header.Size])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipOf(content []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		panic(err)
	}
	w.Write(content)
	w.Close()
	return out.Bytes()
}

func zstdOf(content []byte, options ...zstd.EOption) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, options...)
	if err != nil {
		panic(err)
	}
	w.Write(content)
	w.Close()
	return out.Bytes()
}

// zipOf makes a zip of names and bodies, where change may change each header.
func zipOf(t testing.TB, change func(*zip.FileHeader), pairs ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(pairs); i += 2 {
		header := &zip.FileHeader{Name: pairs[i], Method: zip.Deflate}
		if change != nil {
			change(header)
		}
		file, err := w.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(file, pairs[i+1])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]string{
		"a.zip": "zip", "a.ZIP": "zip", "a.tar": "tar", "a.tar.gz": "tar.gz", "a.tgz": "tar.gz", "a.tar.zst": "tar.zst",
		"a.pt": "", "a.safetensors": "", "a.gguf": "", ".zip": "", "zip": "",
		"a.tar.bz2": "tar.bz2", "a.tbz2": "tar.bz2", "a.TBZ": "tar.bz2", "a.gguf.gz": "gz", "a.zst": "zst", "a.bz2": "bz2",
	} {
		if got := unpack.FormatOf(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestAnArchiveIsUnpacked(t *testing.T) {
	big := strings.Repeat("weights ", 100_000)
	tarred := tarOf(t, entry{name: "pax_global_header", body: "commit", header: tar.Header{Typeflag: tar.TypeXGlobalHeader}},
		entry{name: "./", header: tar.Header{Typeflag: tar.TypeDir}}, entry{name: "./config.json", body: "{}", header: tar.Header{Mode: 0o4600}},
		entry{name: "deep/er/weights.bin", body: big}, entry{name: "deep/", header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o2700}},
		entry{name: "run.sh", body: "x", header: tar.Header{Mode: 0o6711}}, entry{name: "empty"}, entry{name: "模型", body: "y"})
	zipped := zipOf(t, func(h *zip.FileHeader) {
		h.SetMode(0o600)
		if h.Name == "run.sh" {
			h.SetMode(0o711 | fs.ModeSetuid)
		}
	}, "config.json", "{}", "deep/", "", "deep/er/weights.bin", big, "run.sh", "x", "empty", "", "模型", "y")
	for format, archive := range map[string][]byte{"tar": tarred, "tar.gz": gzipOf(tarred), "tar.zst": zstdOf(tarred), "zip": zipped} {
		t.Run(format, func(t *testing.T) {
			into, unpacked, err := try(t, format, archive, limits)
			if err != nil || unpacked.Files != 5 || unpacked.Bytes != int64(len(big)+4) {
				t.Fatal(unpacked, err)
			}
			for name, want := range map[string]string{"config.json": "{}", "deep/er/weights.bin": big, "run.sh": "x", "empty": "", "模型": "y"} {
				if got, err := os.ReadFile(filepath.Join(into, name)); err != nil || string(got) != want {
					t.Error(name, len(got), err)
				}
			}
			for name, want := range map[string]fs.FileMode{"config.json": 0o644, "run.sh": 0o755, "deep": fs.ModeDir | 0o755} {
				if info, err := os.Stat(filepath.Join(into, name)); err != nil || info.Mode() != want {
					t.Error(name, info.Mode(), err)
				}
			}
		})
	}
}

// bzip2Tar is "tar -cjf" of a file a with the content "bzip2", and bzip2One "bzip2" of that content: the standard library only reads bzip2.
var bzip2Tar, bzip2One = fromBase64("QlpoOTFBWSZTWTyz6H8AAG17gMmAAAJAAH8AAADwIF4QCAggAFRWo9AAAD1BJFNDTJo0MgfViOhBKCEInakTaemaBDAxRxOwiroodc/vOprK2wOaA6HkRIR4XckU4UJA8s+h/A=="), fromBase64("QlpoOTFBWSZTWUhjLEQAAACJgBAAECBAECAAMM0AwaaAcXckU4UJBIYyxEA=")

func fromBase64(text string) []byte {
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return bytes
}

func TestBzip2(t *testing.T) {
	into, unpacked, err := try(t, "tar.bz2", bzip2Tar, limits)
	if got, readErr := os.ReadFile(filepath.Join(into, "a")); err != nil || readErr != nil || string(got) != "bzip2" || unpacked.Files != 1 {
		t.Error(string(got), err, readErr)
	}
	for size := range len(bzip2Tar) {
		_, _, err := try(t, "tar.bz2", bzip2Tar[:size], limits)
		mustRefuse(t, fmt.Sprint(size), err, failure.RefusedArchive, "the archive ")
	}
}

// A file that is compressed by itself is published without the ending, within the same bounds.
func TestOneCompressedFile(t *testing.T) {
	big := strings.Repeat("weights ", 100_000)
	for format, each := range map[string]struct {
		archive []byte
		want    string
	}{"gz": {gzipOf([]byte(big)), big}, "zst": {zstdOf([]byte(big)), big}, "bz2": {bzip2One, "bzip2"}} {
		into, unpacked, err := try(t, format, each.archive, limits)
		if got, readErr := os.ReadFile(filepath.Join(into, "x")); err != nil || readErr != nil || string(got) != each.want || unpacked.Bytes != int64(len(each.want)) || unpacked.Files != 1 {
			t.Error(format, len(got), err, readErr)
		}
		for size := range min(len(each.archive), 300) {
			_, _, err := try(t, format, each.archive[:size], limits)
			mustRefuse(t, fmt.Sprint(format, size), err, failure.RefusedArchive, "the archive ")
		}
		_, _, err = try(t, format, []byte("<html>log in"), limits)
		mustRefuse(t, format, err, failure.RefusedArchive, "is no "+format)
	}
	small := limits
	small.MaxBytes = 8192
	_, _, err := try(t, "gz", gzipOf([]byte(big[:8193])), small)
	mustRefuse(t, "bytes", err, failure.TooBig, "need more than spec.model.sizeLimit: raise it")
	if _, _, err = try(t, "gz", gzipOf([]byte(big[:8192])), small); err != nil {
		t.Error("what just fits:", err)
	}
	_, _, err = try(t, "gz", gzipOf(make([]byte, 12<<20)), unpack.Limits{MaxFiles: 1, MaxBytes: 1 << 40, MaxRatio: 100, RatioFrom: 10 << 20})
	mustRefuse(t, "a bomb", err, failure.TooBig, "more than 100 times as large")
}

// The count of entries is modulo 65,536 at the end of a zip: one of 65,537 says 1.
func TestAZipOf65537EntriesWithADamagedDirectory(t *testing.T) {
	pairs := make([]string, 0, 2*65_537)
	for i := range 65_537 {
		pairs = append(pairs, fmt.Sprint(i), "")
	}
	archive := zipOf(t, func(h *zip.FileHeader) { h.Method = zip.Store }, pairs...)
	many := unpack.Limits{MaxFiles: 100, MaxBytes: 1 << 30, MaxRatio: 1000}
	_, _, err := try(t, "zip", archive, many)
	mustRefuse(t, "whole", err, failure.TooBig, "more than 100 files")
	// As a packer without ZIP64 writes it: the counts and the size in the last 22 bytes, and no record before them.
	first := bytes.Index(archive, []byte("PK\x01\x02"))
	end := bytes.LastIndex(archive, []byte("PK\x06\x06"))
	last := bytes.Clone(archive[len(archive)-22:])
	binary.LittleEndian.PutUint16(last[8:], 1)
	binary.LittleEndian.PutUint16(last[10:], 1)
	binary.LittleEndian.PutUint32(last[12:], uint32(end-first))
	binary.LittleEndian.PutUint32(last[16:], uint32(first))
	plain := append(bytes.Clone(archive[:end]), last...)
	_, _, err = try(t, "zip", plain, many)
	mustRefuse(t, "without ZIP64", err, failure.TooBig, "more than 100 files")
	second := first + 1 + bytes.Index(plain[first+1:], []byte("PK\x01\x02"))
	plain[second] = 'X'
	_, _, err = try(t, "zip", plain, many)
	mustRefuse(t, "damaged", err, failure.RefusedArchive, "is damaged")
}

func TestANestedArchiveStaysAsItIs(t *testing.T) {
	nested := string(zipOf(t, nil, "a", "b"))
	into, _, err := try(t, "tar", tarOf(t, entry{name: "inner.zip", body: nested}), limits)
	if got, readErr := os.ReadFile(filepath.Join(into, "inner.zip")); err != nil || readErr != nil || string(got) != nested {
		t.Error(err, readErr)
	}
}

func TestNamesThatAreRefused(t *testing.T) {
	for _, name := range []string{"../a", "../../etc/passwd", "/etc/passwd", "a/../../b", "a/..", `..\a`, `C:\a`, "a/../b", strings.Repeat("n", 300), strings.Repeat("a/", 100) + "b"} {
		_, _, err := try(t, "tar", tarOf(t, entry{name: "good", body: "x"}, entry{name: name, body: "x"}), limits)
		mustRefuse(t, name+" in a tar", err, failure.RefusedArchive, "the archive has an entry ")
		_, _, err = try(t, "zip", zipOf(t, nil, "good", "x", name, "x"), limits)
		mustRefuse(t, name+" in a zip", err, failure.RefusedArchive, "the archive has an entry ")
	}
	_, _, err := try(t, "zip", zipOf(t, nil, "a\x00b", "x"), limits)
	mustRefuse(t, "NUL", err, failure.RefusedArchive, "NUL byte or a back-slash in its name: a\x00b")
	_, _, err = try(t, "zip", zipOf(t, nil, "../../etc/passwd", "x"), limits)
	mustRefuse(t, "the message", err, failure.RefusedArchive, "[RefusedArchive] the archive has an entry outside of its directory: ../../etc/passwd: pack it without")
}

func mustRefuse(t testing.TB, name string, err error, word failure.Word, text string) {
	t.Helper()
	if err == nil || failure.Of(err).Word != word || !strings.Contains(failure.Of(err).Error(), text) {
		t.Errorf("%s: %v, want [%s] with %q", name, err, word, text)
	}
}

func TestEntriesThatAreRefused(t *testing.T) {
	link := func(flag byte) tar.Header { return tar.Header{Typeflag: flag, Linkname: "/etc/passwd"} }
	for name, each := range map[string][]entry{
		"symbolic link":      {{name: "a", header: link(tar.TypeSymlink)}},
		"hard link":          {{name: "b", body: "x"}, {name: "a", header: link(tar.TypeLink)}},
		"device":             {{name: "a", header: tar.Header{Typeflag: tar.TypeChar, Devmajor: 1}}},
		"FIFO":               {{name: "a", header: tar.Header{Typeflag: tar.TypeFifo}}},
		"two entries of one": {{name: "a", body: "x"}, {name: "./a", body: "y"}},
		"a/b: pack":          {{name: "a/b", body: "x"}, {name: "a/b/c", body: "y"}},
		"of one name: d":     {{name: "d/e", body: "x"}, {name: "d", body: "y"}},
		"without a name":     {{name: "./", body: "x", header: tar.Header{Typeflag: tar.TypeCont}}},
		"has no files":       {{name: "a/", header: tar.Header{Typeflag: tar.TypeDir}}},
	} {
		_, _, err := try(t, "tar", tarOf(t, each...), limits)
		if name == "without a name" {
			name = "unknown type"
		}
		mustRefuse(t, name, err, failure.RefusedArchive, name)
	}
	block := tarOf(t, entry{name: "a", header: tar.Header{Typeflag: tar.TypeBlock}})
	_, _, err := try(t, "tar", block, limits)
	mustRefuse(t, "block device", err, failure.RefusedArchive, "device")
}

func TestSparseFilesAreRefused(t *testing.T) {
	archive := tarOf(t, entry{name: "a", body: "x", header: tar.Header{Format: tar.FormatPAX, PAXRecords: map[string]string{"VENDOR.xx": "y"}}})
	archive = bytes.ReplaceAll(archive, []byte("15 VENDOR.xx=y\n"), []byte("15 VENDOR.xx=y\n"))
	_, _, err := try(t, "tar", archive, limits)
	if err != nil {
		t.Fatal("other records are allowed:", err)
	}
	sparse := rawTar("a", 'S', 0, nil)
	_, _, err = try(t, "tar", sparse, limits)
	mustRefuse(t, "GNU", err, failure.RefusedArchive, "sparse file")
	record := "22 GNU.sparse.major=0\n" + "22 GNU.sparse.minor=1\n" + "26 GNU.sparse.map=0,1,5,0\n" + "27 GNU.sparse.realsize=5\n"
	record = strings.Replace(record, "26 GNU.sparse.map=0,1,5,0\n", pax("GNU.sparse.map", "0,1,5,0"), 1)
	record = strings.Replace(record, "27 GNU.sparse.realsize=5\n", pax("GNU.sparse.size", "5")+pax("GNU.sparse.numblocks", "2"), 1)
	_, _, err = try(t, "tar", append(rawBlocks("x", 'x', []byte(record)), rawTar("a", '0', 1, []byte("x"))...), limits)
	mustRefuse(t, "PAX", err, failure.RefusedArchive, "sparse file")
}

// pax returns a record of an extended header.
func pax(key, value string) string {
	size := len(key) + len(value) + 3
	for len(fmt.Sprint(size+len(fmt.Sprint(size)))) > len(fmt.Sprint(size)) {
		size++
	}
	return fmt.Sprintf("%d %s=%s\n", size+len(fmt.Sprint(size)), key, value)
}

// rawTar returns a tar of one entry in GNU's format, with its end.
func rawTar(name string, flag byte, size int, body []byte) []byte {
	_ = size
	return append(rawBlocks(name, flag, body), make([]byte, 1024)...)
}

func rawBlocks(name string, flag byte, body []byte) []byte {
	header := make([]byte, 512)
	copy(header, name)
	copy(header[100:], "0000644\x00")
	copy(header[108:], "0000000\x000000000\x00")
	copy(header[124:], fmt.Sprintf("%011o\x00", len(body)))
	copy(header[136:], "00000000000\x00")
	header[156] = flag
	if flag == 'S' {
		copy(header[257:], "ustar  \x00")
		copy(header[386:], "00000000000\x0000000000000\x00")
		copy(header[483:], "00000000000\x00")
	} else {
		copy(header[257:], "ustar\x0000")
	}
	copy(header[148:], "        ")
	sum := 0
	for _, each := range header {
		sum += int(each)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	out := append(header, body...)
	return append(out, make([]byte, (512-len(body)%512)%512)...)
}

func TestTruncatedArchives(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 1000)
	tarred := tarOf(t, entry{name: "a", body: body[:1024]}, entry{name: "b", body: body})
	for _, each := range []struct {
		format  string
		archive []byte
	}{
		{"tar", tarred[:len(tarred)-1024]}, {"tar.gz", gzipOf(tarred)}, {"tar.zst", zstdOf(tarred)}, {"zip", zipOf(t, nil, "a", body[:1024], "b", body)},
	} {
		step := max(1, len(each.archive)/50)
		for size := 0; size < len(each.archive); size += step {
			_, _, err := try(t, each.format, each.archive[:size], limits)
			mustRefuse(t, fmt.Sprintf("%s of %d bytes", each.format, size), err, failure.RefusedArchive, "the archive ")
		}
	}
	// Between two entries, where only the missing end tells.
	_, _, err := try(t, "tar", tarred[:512+1024], limits)
	mustRefuse(t, "a tar after its first entry", err, failure.RefusedArchive, "ends too early")
	_, _, err = try(t, "tar", tarred[:len(tarred)-1024], limits)
	mustRefuse(t, "a tar without its end", err, failure.RefusedArchive, "ends too early")
	_, _, err = try(t, "tar.gz", gzipOf(tarred)[:len(gzipOf(tarred))-4], limits)
	mustRefuse(t, "a gzip without its checksum", err, failure.RefusedArchive, "ends too early")
}

func TestADamagedArchive(t *testing.T) {
	tarred := tarOf(t, entry{name: "a", body: strings.Repeat("0123456789abcdef", 1000)})
	for format, archive := range map[string][]byte{"tar.gz": gzipOf(tarred), "tar.zst": zstdOf(tarred), "zip": zipOf(t, nil, "a", strings.Repeat("0123456789abcdef", 1000))} {
		damaged := bytes.Clone(archive)
		damaged[len(damaged)/2] ^= 0x55
		if _, _, err := try(t, format, damaged, limits); err == nil || failure.Of(err).Word != failure.RefusedArchive {
			t.Error(format, err)
		}
	}
}

func TestAnotherFormat(t *testing.T) {
	tarred := tarOf(t, entry{name: "a", body: "x"})
	for format, content := range map[string]string{
		"zip": string(tarred), "tar": string(gzipOf(tarred)), "tar.gz": string(zstdOf(tarred)), "tar.zst": string(gzipOf(tarred)),
	} {
		_, _, err := try(t, format, []byte(content), limits)
		mustRefuse(t, format, err, failure.RefusedArchive, "the archive ")
		_, _, err = try(t, format, []byte("\n <!DOCTYPE html><title>Log in</title>"), limits)
		if format != "tar" {
			mustRefuse(t, format, err, failure.RefusedArchive, "is no "+format)
		}
		_, _, err = try(t, format, nil, limits)
		mustRefuse(t, format, err, failure.RefusedArchive, "the archive ")
	}
	_, _, err := try(t, "tar.gz", gzipOf([]byte("no tar")), limits)
	mustRefuse(t, "a gzip that is no tar", err, failure.RefusedArchive, "the archive ")
}

func TestBounds(t *testing.T) {
	many := make([]entry, 0, 101)
	var pairs []string
	for i := range 101 {
		many = append(many, entry{name: fmt.Sprint(i)})
		pairs = append(pairs, fmt.Sprint(i), "")
	}
	_, _, err := try(t, "tar", tarOf(t, many...), limits)
	mustRefuse(t, "files", err, failure.TooBig, "more than 100 files")
	_, _, err = try(t, "zip", zipOf(t, nil, pairs...), limits)
	mustRefuse(t, "files of a zip", err, failure.TooBig, "more than 100 files")
	_, _, err = try(t, "tar", tarOf(t, entry{name: strings.Repeat("a/", 40) + "x"}, entry{name: strings.Repeat("b/", 40) + "x"}, entry{name: strings.Repeat("c/", 40) + "x"}), limits)
	mustRefuse(t, "directories", err, failure.TooBig, "more than 100 files or directories")

	small := limits
	small.MaxBytes = 8192
	body := strings.Repeat("x", 8193)
	_, _, err = try(t, "tar", tarOf(t, entry{name: "a", body: body}), small)
	mustRefuse(t, "bytes", err, failure.TooBig, "need more than spec.model.sizeLimit: raise it")
	_, _, err = try(t, "zip", zipOf(t, nil, "a", body), small)
	mustRefuse(t, "bytes of a zip", err, failure.TooBig, "need more than spec.model.sizeLimit: raise it")
	_, _, err = try(t, "tar", tarOf(t, entry{name: "a", body: "1"}, entry{name: "b", body: "1"}, entry{name: "c", body: "1"}), small)
	mustRefuse(t, "blocks", err, failure.TooBig, "need more than spec.model.sizeLimit")
	_, _, err = try(t, "tar", tarOf(t, entry{name: "a", body: "1"}, entry{name: "b/c/", header: tar.Header{Typeflag: tar.TypeDir}}), small)
	mustRefuse(t, "directories in blocks", err, failure.TooBig, "need more than spec.model.sizeLimit")
	if _, _, err = try(t, "tar", tarOf(t, entry{name: "a", body: body[:8192]}), small); err != nil {
		t.Error("what just fits:", err)
	}
}

func TestBombs(t *testing.T) {
	generous := unpack.Limits{MaxFiles: 100, MaxBytes: 1 << 40, MaxRatio: 100, RatioFrom: 10 << 20}
	zeros := strings.Repeat("\x00", 12<<20)
	tarred := tarOf(t, entry{name: "a", body: zeros})
	for format, archive := range map[string][]byte{
		"tar.gz": gzipOf(tarred), "tar.zst": zstdOf(tarred), "zip": zipOf(t, nil, "a", zeros),
	} {
		_, unpacked, err := try(t, format, archive, generous)
		mustRefuse(t, format, err, failure.TooBig, "more than 100 times as large")
		if unpacked.Bytes > 11<<20 {
			t.Errorf("%s: %d bytes were written", format, unpacked.Bytes)
		}
	}
	// What follows the end of a tar is not written, but costs time.
	_, _, err := try(t, "tar.gz", gzipOf(append(tarOf(t, entry{name: "a", body: "x"}), zeros...)), generous)
	mustRefuse(t, "zeros after the end", err, failure.TooBig, "more than 100 times as large")
}

func TestTheWindowOfZstandardIsBounded(t *testing.T) {
	tarred := tarOf(t, entry{name: "a", body: strings.Repeat("0123456789abcdef", 1<<20)})
	_, _, err := try(t, "tar.zst", zstdOf(tarred, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false)), limits)
	mustRefuse(t, "64 MiB", err, failure.RefusedArchive, "--long")
	if _, _, err = try(t, "tar.zst", zstdOf(tarred, zstd.WithWindowSize(32<<20)), limits); err != nil {
		t.Error("32 MiB:", err)
	}
}

func TestZipsThatLie(t *testing.T) {
	body := strings.Repeat("x", 1000)
	raw := func(change func(*zip.FileHeader)) []byte {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		header := &zip.FileHeader{Name: "a", Method: zip.Store, CompressedSize64: 1000, UncompressedSize64: 1000}
		change(header)
		file, err := w.CreateRaw(header)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(file, body)
		w.Close()
		return out.Bytes()
	}
	deflated := zipOf(t, nil, "a", body)
	grow := func(by int32) []byte {
		archive := bytes.Clone(deflated)
		at := bytes.LastIndex(archive, []byte("PK\x01\x02")) + 24
		binary.LittleEndian.PutUint32(archive[at:], uint32(1000+by))
		return archive
	}
	for _, each := range []struct {
		name, want string
		archive    []byte
	}{
		{"encrypted", "is encrypted: a", raw(func(h *zip.FileHeader) { h.Flags |= 1 })},
		{"a method", "compressed by the method 12", raw(func(h *zip.FileHeader) { h.Method = 12 })},
		{"a symbolic link", "symbolic link", zipOf(t, func(h *zip.FileHeader) { h.SetMode(fs.ModeSymlink | 0o777) }, "a", "/etc/passwd")},
		{"a device", "device or FIFO", zipOf(t, func(h *zip.FileHeader) { h.SetMode(fs.ModeDevice) }, "a", "")},
		{"a FIFO", "device or FIFO", zipOf(t, func(h *zip.FileHeader) { h.SetMode(fs.ModeNamedPipe) }, "a", "")},
		{"stored with other sizes", "other sizes", raw(func(h *zip.FileHeader) { h.UncompressedSize64 = 10 })},
		{"less than it says", "ends too early", grow(1)},
		{"more than it says", "damaged", grow(-1)},
		{"data outside", "ends too early", raw(func(h *zip.FileHeader) { h.CompressedSize64, h.UncompressedSize64 = 1<<40, 1<<40 })},
		{"another checksum", "damaged", raw(func(h *zip.FileHeader) { h.CRC32 = 1 })},
		{"a checksum of 0", "without a checksum: a", raw(func(h *zip.FileHeader) { h.CRC32 = 0 })},
		{"two of one name", "two entries of one name: a", zipOf(t, nil, "a", "x", "a", "y")},
		{"overlapping", "overlap", overlapping(t)},
	} {
		_, _, err := try(t, "zip", each.archive, limits)
		mustRefuse(t, each.name, err, failure.RefusedArchive, each.want)
	}
}

// overlapping returns a zip whose second entry is the first, under another name.
func overlapping(t *testing.T) []byte {
	archive := zipOf(t, nil, "a", "xxxx", "b", "yyyy")
	second := bytes.LastIndex(archive, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(archive[second+42:], 0)
	return archive
}

func TestAZipWithALargeDirectory(t *testing.T) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := range 300 {
		header := &zip.FileHeader{Name: fmt.Sprint(i), Comment: strings.Repeat("c", 65_000)}
		if _, err := w.CreateRaw(header); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	_, _, err := try(t, "zip", out.Bytes(), unpack.Limits{MaxFiles: 1000, MaxBytes: 1 << 30, MaxRatio: 1000})
	mustRefuse(t, "directory", err, failure.TooBig, "a directory of more than 16 MiB")
}

// Frames that decoders skip may come first (RFC 8878, 3.1.2): pzstd, and tools that sign, write
// such.
func TestAZstandardThatBeginsWithASkippableFrame(t *testing.T) {
	content := zstdOf(tarOf(t, entry{name: "a", body: "weights"}))
	for nibble := range 16 {
		frame := []byte{0x50 + byte(nibble), 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'}
		into, _, err := try(t, "tar.zst", append(frame, content...), limits)
		if got, readErr := os.ReadFile(filepath.Join(into, "a")); err != nil || readErr != nil || string(got) != "weights" {
			t.Error(nibble, err, readErr)
		}
	}
	_, _, err := try(t, "tar.zst", append([]byte{0x60, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, content...), limits)
	mustRefuse(t, "another frame", err, failure.RefusedArchive, "is no tar.zst")
}

// A zip whose places are wrong is damaged: no error of it is one of the volume.
func TestAZipWithWrongPlaces(t *testing.T) {
	good := zipOf(t, nil, "a", "weights", "b", "more")
	end := bytes.LastIndex(good, []byte("PK\x05\x06"))
	header := bytes.Index(good, []byte("PK\x01\x02"))
	for name, at := range map[string]int{"of its directory": end + 16, "of an entry": header + 42} {
		for _, value := range []uint32{0, 1, 30, uint32(end) - 1, uint32(end) + 1, uint32(len(good)), 1 << 31, 1<<32 - 2} {
			bad := bytes.Clone(good)
			if binary.LittleEndian.Uint32(bad[at:]) == value {
				continue
			}
			binary.LittleEndian.PutUint32(bad[at:], value)
			if _, _, err := try(t, "zip", bad, limits); err != nil && failure.Of(err).Word != failure.RefusedArchive {
				t.Errorf("the place %s is %d: %v", name, value, err)
			}
		}
	}
}
