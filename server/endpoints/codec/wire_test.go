package codec

import (
	"encoding/binary"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/costtest"
)

// The numbers of the fields of JSONSchemaProps that lead to others of them.
const (
	notField        = 28
	propertiesField = 29
	orBoolField     = 30 // additionalProperties: a bool is its field 1, a schema its field 2
)

// nest is a message that grows around what it has.
type nest struct {
	data []byte // ends with the message
	at   int
}

func newNest(inside ...byte) *nest {
	n := &nest{make([]byte, 4<<20), 4 << 20}
	return n.before(inside...)
}

func (n *nest) bytes() []byte { return n.data[n.at:] }

func (n *nest) before(b ...byte) *nest {
	n.at -= len(b)
	copy(n.data[n.at:], b)
	return n
}

// in makes all that there is a field. high sets bits of the tag that generated
// code cuts off.
func (n *nest) in(number, wire, high uint64) *nest {
	header := binary.AppendUvarint(nil, high<<35|number<<3|wire)
	return n.before(binary.AppendUvarint(header, uint64(len(n.bytes())))...)
}

// times applies wrap n times.
func (n *nest) times(levels int, wrap func(*nest)) []byte {
	for range levels {
		wrap(n)
	}
	return n.bytes()
}

func TestDeepMessagesAreKnownBeforehand(t *testing.T) {
	schema := layoutOf(reflect.TypeFor[v1.JSONSchemaProps]())
	for name, c := range map[string]struct {
		levels int // of messages in a level
		wrap   func(*nest)
	}{
		"not":                             {1, func(n *nest) { n.in(notField, 2, 0) }},
		"not, long tag":                   {1, func(n *nest) { n.in(notField, 2, 1) }},
		"after a group":                   {1, func(n *nest) { n.in(notField, 2, 0).before(0xfb, 0x0f, 8, 1, 0xfc, 0x0f) }},
		"after a number":                  {1, func(n *nest) { n.in(notField, 2, 0).before(0xf8, 0x0f, 5) }},
		"after a fixed64 in a group":      {1, func(n *nest) { n.in(notField, 2, 0).before(0xfb, 0x0f, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0xfc, 0x0f) }},
		"after a fixed32 in a group":      {1, func(n *nest) { n.in(notField, 2, 0).before(0xfb, 0x0f, 13, 1, 2, 3, 4, 0xfc, 0x0f) }},
		"after bytes in a group":          {1, func(n *nest) { n.in(notField, 2, 0).before(0xfb, 0x0f, 10, 2, 0xff, 0xff, 0xfc, 0x0f) }},
		"after a group in a group":        {1, func(n *nest) { n.in(notField, 2, 0).before(0xfb, 0x0f, 11, 12, 8, 1, 0xfc, 0x0f) }},
		"after a fixed64":                 {1, func(n *nest) { n.in(notField, 2, 0).before(0xf9, 0x0f, 1, 2, 3, 4, 5, 6, 7, 8) }},
		"after a fixed32":                 {1, func(n *nest) { n.in(notField, 2, 0).before(0xfd, 0x0f, 1, 2, 3, 4) }},
		"after bytes":                     {1, func(n *nest) { n.in(notField, 2, 0).before(0xfa, 0x0f, 2, 0xff, 0xff) }},
		"after another message":           {1, func(n *nest) { n.in(notField, 2, 0).before(0xe2, 1, 0) }},
		"after the bool of a union":       {2, func(n *nest) { n.in(2, 2, 0).before(8, 1).in(orBoolField, 2, 0) }},
		"after a third field of an entry": {2, func(n *nest) { n.in(2, 2, 0).before(10, 1, 'a').before(0x18, 9).in(propertiesField, 2, 0) }},
		"properties":                      {2, func(n *nest) { n.in(2, 2, 0).before(10, 1, 'a').in(propertiesField, 2, 0) }},
		// Neither key nor value has the wire type that it should have, and the key is no message.
		"odd properties": {2, func(n *nest) { n.in(2, 0, 0).before(8, 3, 0xff, 0xff, 0xff).in(propertiesField, 2, 0) }},
	} {
		shallow, deep := newNest().times(100, c.wrap), newNest().times(maxNesting/c.levels+1, c.wrap)
		if !schema.checkNesting(shallow) {
			t.Errorf("%s: refused", name)
		}
		var s v1.JSONSchemaProps
		if err := s.Unmarshal(shallow); err != nil {
			t.Errorf("%s: the test's data is wrong: %v", name, err)
		}
		if got := depth(&s); got != 101 {
			t.Errorf("%s: the test's data has %d levels", name, got)
		}
		if schema.checkNesting(deep) {
			t.Errorf("%s: %d levels have not been noticed", name, maxNesting+1)
		}
	}
	text := make([]byte, 1<<20)
	if schema.checkNesting(newNest(text...).in(3, 2, 0).times(200, func(n *nest) { n.in(notField, 2, 0) })) {
		t.Error("a large text far inside has not been noticed")
	}
	whole := layoutOf(reflect.TypeFor[*v1.CustomResourceDefinition]())
	if whole.fields[1] == nil || whole.fields[1].fields[11] != nil || whole.fields[2].fields[7].fields[4].fields[1].fields[notField] == nil {
		t.Error("the layout of CRDs is not what it should be")
	}
	if len(layoutOf(reflect.TypeFor[metav1.Time]()).fields) != 0 {
		t.Error("a time has messages in it")
	}
}

// The sum of the sizes of all messages may be as large as the limit, and no larger.
func TestSumOfSizes(t *testing.T) {
	schema := layoutOf(reflect.TypeFor[v1.JSONSchemaProps]())
	n := newNest(make([]byte, 1_320_000)...).in(3, 2, 0)
	sum := len(n.bytes())
	for range 100 {
		sum += len(n.in(notField, 2, 0).bytes())
	}
	// A text in the outermost message is counted once.
	text := newNest(make([]byte, maxWire-sum-4)...).in(3, 2, 0).bytes()
	if sum += len(text); sum != maxWire {
		t.Fatalf("the test's data has a sum of %d", sum)
	}
	if !schema.checkNesting(append(text, n.bytes()...)) {
		t.Error("the limit is refused")
	}
	text = newNest(make([]byte, len(text)-3)...).in(3, 2, 0).bytes()
	if schema.checkNesting(append(text, n.bytes()...)) {
		t.Error("one byte more is accepted")
	}
}

// Generated code stops where data is malformed: it never decodes what follows, however deep.
func TestMalformedMessagesAreForTheDecoder(t *testing.T) {
	schema := layoutOf(reflect.TypeFor[v1.JSONSchemaProps]())
	deep := newNest().times(maxNesting+1, func(n *nest) { n.in(notField, 2, 0) })
	for name, malformed := range map[string][]byte{
		"an unknown wire type":                 {0xfe, 0x0f},
		"an unknown wire type in a group":      {0xfb, 0x0f, 14, 0xfc, 0x0f},
		"the end of no group":                  {0xfc, 0x0f},
		"the end of no group before another":   {0xfc, 0x0f, 0xfb, 0x0f},
		"a tag that does not end":              {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
		"a number that does not end":           {0xf8, 0x0f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
		"a length that does not end":           {0xe2, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
		"a length of a group's bytes":          {0xfb, 0x0f, 10, 0xff, 0xff, 0xff, 0x7f, 0xfc, 0x0f},
		"a negative length of a group's bytes": {0xfb, 0x0f, 10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0xfc, 0x0f},
		"a length after the end":               {0xe2, 1, 0xff, 0xff, 0xff, 0x7f},
		"a length far after the end":           {0xe2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"a fixed64 that leaves its message":    {0xe2, 1, 6, 0xf9, 0x0f, 1, 2, 3, 4},
		"a fixed32 that leaves its message":    {0xe2, 1, 4, 0xfd, 0x0f, 1, 2},
		"a number that leaves its message":     {0xe2, 1, 3, 0xf8, 0x0f, 0x80},
		"a group that leaves its message":      {0xe2, 1, 2, 0xfb, 0x0f},
		"a length that leaves its message":     {0xe2, 1, 2, 0xe2, 1},
		"a message that leaves its message":    {0xe2, 1, 3, 0xe2, 1, 1},
		"a group whose number does not end":    {0xfb, 0x0f, 8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
		"a group whose fields leave the end":   {0xe2, 1, 5, 0xfb, 0x0f, 9, 1, 2},
	} {
		var s v1.JSONSchemaProps
		if err := s.Unmarshal(newNest(deep[:0]...).before(malformed...).bytes()); err == nil {
			t.Errorf("%s: the test's data is not malformed", name)
		}
		if !schema.checkNesting(malformed) {
			t.Errorf("%s: refused before the decoder says why", name)
		}
		if !schema.checkNesting(append(malformed, deep...)) {
			t.Errorf("%s: what follows has been measured", name)
		}
	}
}

// FuzzCheckNesting finds data that checkNesting accepts and that nests deeply
// all the same, or takes long to measure.
func FuzzCheckNesting(f *testing.F) {
	f.Add(newNest().times(20, func(n *nest) { n.in(notField, 2, 0) }))
	f.Add(newNest().times(20, func(n *nest) { n.in(2, 0, 0).before(8, 1, 'a').in(propertiesField, 2, 0) }))
	f.Add([]byte{0xfb, 0x0f, 8, 1, 0xfc, 0x0f, 0xe2, 1, 0})
	schema := layoutOf(reflect.TypeFor[v1.JSONSchemaProps]())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		var ok bool
		costtest.Within(t, time.Second, func() { ok = schema.checkNesting(data) })
		var s v1.JSONSchemaProps
		if err := s.Unmarshal(data); ok && err == nil && depth(&s) > maxNesting {
			t.Fatal("deeper than it was said to be")
		}
	})
}

func depth(s *v1.JSONSchemaProps) int {
	deepest := 0
	if s.Not != nil {
		deepest = depth(s.Not)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		deepest = depth(s.AdditionalProperties.Schema)
	}
	for _, p := range s.Properties {
		deepest = max(deepest, depth(&p))
	}
	return deepest + 1
}
