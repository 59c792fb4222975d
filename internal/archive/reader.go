package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// Reader reads a file. What it reads may be hostile.
type Reader struct {
	// Header is that of the file.
	Header Header

	from  *bufio.Reader // compressed
	gzip  *gzip.Reader
	lines *bufio.Reader
	sum   hash.Hash
	buf   []byte
	bytes int64

	resource string
	place    string
	seen     map[string]bool // resources
	end      *End
	n        int64
}

// NewReader reads the header. Records are valid until the next call of Next.
func NewReader(from io.Reader) (*Reader, error) {
	r := &Reader{from: bufio.NewReader(from), sum: sha256.New(), seen: map[string]bool{}}
	var err error
	if r.gzip, err = gzip.NewReader(r.from); err != nil {
		return nil, r.failed("reading the beginning", err, "it is not a file of 'tenant export', which gzip has compressed")
	}
	r.gzip.Multistream(false)
	r.lines = bufio.NewReaderSize(r.gzip, 64<<10)
	text, err := r.line(maxHeader)
	if err != nil {
		return nil, err
	}
	r.sum.Write(text)
	var format struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &format); err != nil || format.Format != Format {
		return nil, damaged("its first line is not that of a file of 'tenant export'")
	}
	if format.Version != Version {
		return nil, fmt.Errorf("the file has version %d of the format, and this program reads version %d: use the release that wrote the file, or a later one", format.Version, Version)
	}
	if err := json.Unmarshal(text, &r.Header); err != nil {
		return nil, damaged("its first line cannot be read (%v)", err)
	}
	return r, nil
}

// failed tells an error of the source from one that says that the file is damaged.
func (r *Reader) failed(what string, err error, why string) error {
	var corrupt interface{ Error() string }
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("it ends before its last line")
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return damaged("%s", why)
	case errors.As(err, &corrupt) && strings.HasPrefix(corrupt.Error(), "flate: corrupt"):
		return damaged("%s", why)
	}
	return fmt.Errorf("%s of the file failed: %w", what, err)
}

// line reads a line with its end. It is valid until the next call.
func (r *Reader) line(longest int) ([]byte, error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.lines.ReadSlice('\n')
		r.buf = append(r.buf, part...)
		r.bytes += int64(len(part))
		switch {
		case len(r.buf) > longest:
			return nil, damaged("it has a line of more than %d MiB", longest>>20)
		case r.bytes > maxBytes:
			return nil, damaged("it has more than %d GiB", int64(maxBytes)>>30)
		case err == nil:
			return r.buf, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, r.failed("reading a line", err, "gzip cannot decompress it")
		}
	}
}

// Next returns the next object, and io.EOF when the file was read and is whole.
func (r *Reader) Next() (Record, error) {
	if r.end != nil {
		return Record{}, io.EOF
	}
	text, err := r.line(maxLine)
	if err != nil {
		return Record{}, err
	}
	var l line
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&l); err != nil {
		return Record{}, damaged("line %d cannot be read (%v)", r.n+2, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Record{}, damaged("line %d has more than one value", r.n+2)
	}
	switch {
	case l.Failed != "":
		return Record{}, &FailedError{l.Failed}
	case l.End != nil && l.Resource == "" && l.Object == nil:
		return Record{}, r.finish(*l.End)
	case l.End != nil || l.Resource == "" || l.Object == nil:
		return Record{}, damaged("line %d is neither an object nor the end", r.n+2)
	}
	r.sum.Write(text)
	if r.n++; r.n > maxObjects {
		return Record{}, damaged("it has more than %d objects", maxObjects)
	}
	record := Record{Resource: l.Resource, Object: l.Object}
	if err := r.check(&record); err != nil {
		return Record{}, err
	}
	return record, nil
}

// check finds out where an object is, and that it comes after those before.
func (r *Reader) check(record *Record) error {
	var m metadata
	if err := json.Unmarshal(record.Object, &m); err != nil || m.APIVersion == "" || m.Kind == "" {
		return damaged("line %d has no object with an apiVersion and a kind", r.n+1)
	}
	record.Namespace, record.Name = m.Metadata.Namespace, m.Metadata.Name
	if !segment(record.Name) || record.Namespace != "" && !segment(record.Namespace) {
		return damaged("line %d has an object whose name or namespace is not valid", r.n+1)
	}
	at := place(record.Namespace, record.Name)
	switch {
	case record.Resource != r.resource:
		if r.seen[record.Resource] || record.Resource == CRDs && len(r.seen) > 0 {
			return damaged("line %d: the objects of %s are not together, or CRDs are not first", r.n+1, record.Resource)
		}
		if len(r.seen) >= maxResources {
			return damaged("it has more than %d resources", maxResources)
		}
		r.seen[record.Resource] = true
	case at <= r.place:
		return damaged("line %d: %s %s is there twice, or in another place than by its name", r.n+1, record.Resource, at)
	}
	r.resource, r.place = record.Resource, at
	return nil
}

// segment reports whether a text can be a part of a key.
func segment(text string) bool {
	return text != "" && text != "." && text != ".." && len(text) <= maxSegment && !strings.ContainsAny(text, "/%\x00")
}

// finish compares the end with what was read. It returns io.EOF.
func (r *Reader) finish(end End) error {
	if end.Objects != r.n {
		return damaged("it has %d objects, and should have %d", r.n, end.Objects)
	}
	if end.SHA256 != hex.EncodeToString(r.sum.Sum(nil)) {
		return damaged("its checksum is wrong")
	}
	switch _, err := r.lines.ReadByte(); {
	case err == nil:
		return damaged("there is something after its last line")
	case !errors.Is(err, io.EOF):
		return r.failed("reading the end", err, "the checksum of gzip is wrong")
	}
	if _, err := r.from.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged("there is something after its end")
	}
	r.end = &end
	return io.EOF
}

// End is the last line. It is empty before Next has returned io.EOF.
func (r *Reader) End() End {
	if r.end == nil {
		return End{}
	}
	return *r.end
}

// Read is how many bytes were read, before compression.
func (r *Reader) Read() int64 { return r.bytes }
