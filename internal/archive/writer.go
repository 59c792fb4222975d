package archive

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
)

// Writer writes a file. Its callers write objects in the order that a Reader wants.
type Writer struct {
	gzip *gzip.Writer
	sum  hash.Hash
	n    int64
}

// NewWriter writes the header. It sets the format and the version.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	h.Format, h.Version = Format, Version
	w := &Writer{gzip: gzip.NewWriter(to), sum: sha256.New()}
	return w, w.write(h)
}

func (w *Writer) write(v any) error {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data) // it ends with a newline
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	w.sum.Write(data.Bytes())
	_, err := w.gzip.Write(data.Bytes())
	return err
}

// Write writes an object, which is JSON.
func (w *Writer) Write(resource string, object []byte) error {
	if err := w.write(line{Resource: resource, Object: bytes.TrimSpace(object)}); err != nil {
		return err
	}
	w.n++
	return nil
}

// Flush sends what was written so far.
func (w *Writer) Flush() error { return w.gzip.Flush() }

// Close writes the end. Objects and SHA256 need not be set.
func (w *Writer) Close(e End) error {
	e.Objects, e.SHA256 = w.n, hex.EncodeToString(w.sum.Sum(nil))
	return errors.Join(w.write(line{End: &e}), w.gzip.Close())
}

// Fail ends the file with an error, which a Reader returns as a FailedError.
func (w *Writer) Fail(why error) error {
	return errors.Join(w.write(line{Failed: why.Error()}), w.gzip.Close())
}
