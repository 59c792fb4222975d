package openapihandler

import (
	"context"
	"io"
	"maps"
	"slices"

	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/openapi"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/server/catalog"
)

// unit is a part of documents. Its methods append members of JSON objects,
// divided by commas.
type unit interface {
	appendPaths(dst []byte, f openapi.Format) []byte
	appendModels(dst []byte, f openapi.Format) []byte
	// bare is the unit with as little about schemas as possible.
	bare() unit
}

// custom is the unit of a CRD, in some of its versions.
type custom struct {
	entry    *catalog.Entry
	versions []*catalog.Version
	hidden   bool // nothing is said about schemas
}

func (u custom) bare() unit { u.hidden = true; return u }

func (u custom) appendPaths(dst []byte, f openapi.Format) []byte {
	e := u.entry
	for i, v := range u.versions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = openapi.AppendPaths(dst, openapi.Resource{
			Group: e.Group, Version: v.Name, Plural: e.Accepted.Plural, Kind: e.Accepted.Kind, ListKind: e.Accepted.ListKind,
			Namespaced: e.Namespaced, Status: v.Status, Scale: v.Scale,
		}, f)
	}
	return dst
}

func (u custom) appendModels(dst []byte, f openapi.Format) []byte {
	e := u.entry
	d := &crd.CRD{Name: e.Name}
	if !u.hidden {
		if read, err := e.CRD(); err != nil {
			klog.ErrorS(err, "Failed to unpack a CRD, publishing it without schemas", "name", e.Name)
		} else {
			d = read
			defer d.Release()
		}
	}
	d.Group, d.Plural, d.Kind, d.ListKind = e.Group, e.Accepted.Plural, e.Accepted.Kind, e.Accepted.ListKind
	for i, v := range u.versions {
		if i > 0 {
			dst = append(dst, ',')
		}
		version := d.Version(v.Name)
		if version == nil {
			version = &crd.Version{Name: v.Name}
		}
		more, err := openapi.AppendModels(dst, d, version, f)
		if err != nil {
			klog.ErrorS(err, "Failed to convert the schema of a CRD version, publishing it without schema", "name", e.Name, "version", v.Name)
			more, _ = openapi.AppendModels(dst, d, &crd.Version{Name: v.Name}, f) // without a schema nothing fails
		}
		dst = more
	}
	return dst
}

// fixed is a unit that does not depend on the catalog.
type fixed struct {
	resources []openapi.Resource
	models    map[openapi.Format]models
}

func (u fixed) bare() unit { return fixed{resources: u.resources} }

func (u fixed) appendPaths(dst []byte, f openapi.Format) []byte {
	for i, r := range u.resources {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = openapi.AppendPaths(dst, r, f)
	}
	return dst
}

func (u fixed) appendModels(dst []byte, f openapi.Format) []byte {
	for i, name := range slices.Sorted(maps.Keys(u.models[f])) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsondoc.AppendString(dst, name), ':')
		dst = append(dst, u.models[f][name]...)
	}
	return dst
}

// with returns the unit with more models.
func (u fixed) with(more map[openapi.Format]models) fixed {
	union := map[openapi.Format]models{openapi.V3: {}, openapi.V2: {}}
	for f := range union {
		maps.Copy(union[f], u.models[f])
		maps.Copy(union[f], more[f])
	}
	u.models = union
	return u
}

const info = `"info":{"title":"Kubernetes CRD Swagger","version":"v0.1.0"},"paths":{`

// The texts between the parts of a document.
var frames = map[openapi.Format]struct{ head, middle, tail string }{
	openapi.V3: {`{"openapi":"3.0.0",` + info, `},"components":{"schemas":{`, `}}}`},
	openapi.V2: {`{"swagger":"2.0",` + info, `},"definitions":{`, `}}`},
}

// appendParameters appends what a document of v2 has once, in place of its last
// brace.
func appendParameters(tail []byte) []byte {
	tail = append(tail[:len(tail)-1], `,"parameters":`...)
	return append(openapi.AppendParameters(tail), '}')
}

// document is units that are published together.
type document struct {
	format openapi.Format
	units  []unit
	slots  chan struct{} // held while a unit is made, never while it is sent
}

// making runs f when there is a slot.
func (d *document) making(ctx context.Context, f func()) error {
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.slots }()
	f()
	return nil
}

// writeJSON writes the document as JSON, unit by unit.
func (d *document) writeJSON(ctx context.Context, w io.Writer) error {
	frame := frames[d.format]
	if _, err := io.WriteString(w, frame.head); err != nil {
		return err
	}
	if err := d.writeMembers(ctx, w, unit.appendPaths); err != nil {
		return err
	}
	if _, err := io.WriteString(w, frame.middle); err != nil {
		return err
	}
	if err := d.writeMembers(ctx, w, unit.appendModels); err != nil {
		return err
	}
	tail := []byte(frame.tail)
	if d.format == openapi.V2 {
		tail = appendParameters(tail)
	}
	_, err := w.Write(tail)
	return err
}

func (d *document) writeMembers(ctx context.Context, w io.Writer, members func(unit, []byte, openapi.Format) []byte) error {
	var buffer []byte
	written := false
	for _, u := range d.units {
		buffer = buffer[:0]
		if written {
			buffer = append(buffer, ',')
		}
		before := len(buffer)
		if err := d.making(ctx, func() { buffer = members(u, buffer, d.format) }); err != nil {
			return err
		}
		if len(buffer) == before {
			continue
		}
		written = true
		if _, err := w.Write(buffer); err != nil {
			return err
		}
	}
	return nil
}

// writeProtobuf writes the document as protobuf. Messages one after the other
// are one message with all their fields, and so each unit is a document of its
// own.
func (d *document) writeProtobuf(ctx context.Context, w io.Writer) error {
	for _, u := range d.units {
		var message []byte
		var err error
		if stopped := d.making(ctx, func() { message, err = d.message(u) }); stopped != nil {
			return stopped
		}
		if err != nil {
			klog.ErrorS(err, "Failed to encode a CRD as protobuf, publishing it without schemas")
			if message, err = d.message(u.bare()); err != nil {
				return err
			}
		}
		if _, err := w.Write(message); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) message(u unit) ([]byte, error) {
	frame := frames[d.format]
	data := u.appendPaths([]byte(frame.head), d.format)
	data = u.appendModels(append(data, frame.middle...), d.format)
	data = append(data, frame.tail...)
	if d.format == openapi.V3 {
		return handler3.ToV3ProtoBinary(data)
	}
	if _, ok := u.(fixed); ok {
		data = appendParameters(data)
	}
	return handler.ToProtoBinary(data)
}
