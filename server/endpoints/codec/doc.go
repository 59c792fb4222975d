// Package codec turns requests into objects, and objects into responses and
// into what etcd holds, without decoding them.
//
//	body ── YAML to JSON ──▶ Form.FromRequest ──▶ *object.Object ──▶ handlers, registry
//	response, watch event ◀── bytes ◀── Form.Fresh ◀── *object.Object, *object.List
//	etcd ◀── bytes ◀── *object.Object;   etcd ──▶ Form.FromStorage ──▶ *object.Object
//	protobuf ◀──▶ Go type ◀──▶ JSON, from there as above (only of a Typed form)
//	Status, options, tables ◀──▶ the serializers of apimachinery
//
// # Invariants
//
// What is written for an object, a list or a watch event is byte for byte what
// upstream's serializers write for the same content as a map. Lists are written
// piece by piece: the first write is one byte, by which the response writer of
// k8s.io/apiserver knows a stream, and no more than a piece is in memory twice.
// YAML and indented JSON are written as a whole here; package resource makes
// them of the pieces.
//
// Protobuf is measured before it is decoded: generated code calls itself for
// every level of nesting, and a stack that overflows ends the process.
//
// What a schema says is no matter of this package. A [Form] knows it, and hands
// out objects that are complete: pruned, defaulted, canonical.
package codec
