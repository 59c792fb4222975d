// Package generator makes valid, nearly valid and hostile objects of built-in kinds, and the changes that a client may ask for.
//
//	OpenAPI v3 document of kube-apiserver ─▶ Parse ─▶ *Schema
//	seed object + Schema + Source ─▶ Mutate ─▶ object; Merge, JSONPatch, Strategic, Applied ─▶ patch
//
// An object is a function of its Source: the same numbers give the same object. A mutated object has at most as many bytes as maxBytes
// plus one generated value, whatever the seed is. Values are those of encoding/json, and json.Number for numbers that int64 does not
// hold, and Slot for values that differ between servers.
package generator
