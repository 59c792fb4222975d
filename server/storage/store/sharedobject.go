package store

import (
	"bytes"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// told is a change on its way to watches. They share what it is encoded to.
type told struct {
	change
	is, was *sharedObject // made for the first watch
}

// object returns the object after the change.
func (t *told) object() runtime.Object {
	if t.is == nil {
		t.is = &sharedObject{Object: t.after.object}
	}
	return t.is
}

// deleted returns the object before the change, with the revision of the change.
func (t *told) deleted(versioner storage.Versioner) (runtime.Object, error) {
	if t.was == nil {
		object := t.before.object.DeepCopyObject()
		if err := versioner.UpdateObject(object, t.revision); err != nil {
			return nil, err
		}
		t.was = &sharedObject{Object: object}
	}
	return t.was, nil
}

// A sharedObject is the object of an event that many watches get. It is encoded once for each encoder, and
// not changed.
type sharedObject struct {
	runtime.Object
	mu        sync.Mutex
	encodings map[runtime.Identifier]*encoding
}

type encoding struct {
	once sync.Once
	data []byte
	err  error
}

var (
	_ runtime.CacheableObject   = (*sharedObject)(nil)
	_ metav1.ObjectMetaAccessor = (*sharedObject)(nil)
)

// CacheEncode implements runtime.CacheableObject.
func (s *sharedObject) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	s.mu.Lock()
	e := s.encodings[id]
	if e == nil {
		if s.encodings == nil {
			s.encodings = map[runtime.Identifier]*encoding{}
		}
		e = &encoding{}
		s.encodings[id] = e
	}
	s.mu.Unlock()
	e.once.Do(func() {
		var b bytes.Buffer
		e.err = encode(s.GetObject(), &b)
		e.data = b.Bytes()
	})
	if e.err != nil {
		return e.err
	}
	if into, ok := w.(runtime.Splice); ok {
		into.Splice(e.data)
		return nil
	}
	_, err := w.Write(e.data)
	return err
}

// GetObject implements runtime.CacheableObject.
func (s *sharedObject) GetObject() runtime.Object { return s.DeepCopyObject() }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (s *sharedObject) GetObjectMeta() metav1.Object {
	m, err := meta.Accessor(s.Object)
	if err != nil {
		return nil
	}
	return m
}
