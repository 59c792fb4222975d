package codec

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

const (
	pieceSize  = 64 << 10  // lists are written in pieces of about this size
	keepBuffer = 512 << 10 // larger buffers are not kept for the next object
)

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 8<<10); return &b }}

// withBuffer lends f a buffer, which f returns, grown perhaps.
func withBuffer(f func(b []byte) ([]byte, error)) error {
	p := buffers.Get().(*[]byte)
	b, err := f((*p)[:0])
	if cap(b) <= keepBuffer {
		*p = b
		buffers.Put(p)
	}
	return err
}

// current returns an object normalized by the current schema. Bookmarks of watches,
// which have no name, stay unchanged.
func current(f Decoder, o *object.Object) *object.Object {
	if o.GetName() == "" {
		return o
	}
	return f.Renormalize(o)
}

// writeObject writes an object in one piece.
func (s *serializer) writeObject(w io.Writer, o *object.Object) error {
	o = current(s.decoder, o)
	if s.options.Yaml || s.options.Pretty {
		return s.writeForReaders(w, o.JSON())
	}
	return withBuffer(func(b []byte) ([]byte, error) {
		b = append(o.AppendJSON(b), '\n')
		_, err := w.Write(b)
		return b, err
	})
}

// writeList writes a list piece by piece.
func (s *serializer) writeList(w io.Writer, l *object.List) error {
	if s.options.Yaml || s.options.Pretty {
		b := l.AppendOpening(nil)
		for i := range l.Items {
			b = s.appendItem(b, l, i)
		}
		return s.writeForReaders(w, l.AppendClosing(b))
	}
	return withBuffer(func(b []byte) ([]byte, error) {
		b = l.AppendOpening(b)
		if _, err := w.Write(b[:1]); err != nil { // so that the stream is known for one
			return b, err
		}
		b = b[:copy(b, b[1:])]
		for i := range l.Items {
			b = s.appendItem(b, l, i)
			if len(b) < pieceSize {
				continue
			}
			if _, err := w.Write(b); err != nil {
				return b, err
			}
			b = b[:0]
		}
		b = append(l.AppendClosing(b), '\n')
		_, err := w.Write(b)
		return b, err
	})
}

func (s *serializer) appendItem(b []byte, l *object.List, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return current(s.decoder, &l.Items[i]).AppendJSON(b)
}

// writeForReaders writes YAML, or JSON with indentation.
func (s *serializer) writeForReaders(w io.Writer, canonical []byte) error {
	if s.options.Yaml {
		text, err := yaml.JSONToYAML(canonical)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, canonical, "", "  "); err != nil {
		return err
	}
	_, err := w.Write(text.Bytes())
	return err
}

// writeEvent writes a watch event around the bytes of its object, which have
// just been written by an encoder: to marshal them again would only read them
// twice.
func writeEvent(w io.Writer, e *metav1.WatchEvent) error {
	return withBuffer(func(b []byte) ([]byte, error) {
		b = append(b, `{"type":`...)
		b = jsondoc.AppendString(b, e.Type)
		b = append(b, `,"object":`...)
		b = append(b, bytes.TrimRight(e.Object.Raw, "\n")...)
		b = append(b, "}\n"...)
		_, err := w.Write(b)
		return b, err
	})
}
