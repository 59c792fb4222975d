// Package codec converts request bodies to objects, and objects to responses and to
// stored values. Objects stay bytes: they are not decoded into Go values.
//
//	body ── YAML to JSON ──▶ Decoder.FromRequest ──▶ *object.Object ──▶ handlers, registry
//	response, watch event ◀── bytes ◀── Decoder.Renormalize ◀── *object.Object, *object.List
//	etcd ◀── bytes ◀── *object.Object;   etcd ──▶ Decoder.FromStorage ──▶ *object.Object
//	protobuf ◀──▶ Go type ◀──▶ JSON, from there as above (only with a Typed decoder)
//	Status, options, tables ◀──▶ the serializers of apimachinery
//
// # Invariants
//
// Objects, lists and watch events are written byte for byte as upstream's serializers
// write the same content as a map. Lists are written piece by piece, so that only one
// piece is in memory twice. The first write is one byte: the response writer of
// k8s.io/apiserver recognizes a stream by it. This package writes YAML and indented
// JSON as a whole; package endpoints makes them of the pieces.
//
// Protobuf is measured before it is decoded: generated code recurses for every level
// of nesting, and a stack overflow ends the process.
//
// This package does not know schemas. A [Decoder] applies them and returns objects
// that are pruned, defaulted and canonical.
package codec
