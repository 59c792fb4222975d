package codec

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
)

const (
	// maxNesting is how deeply messages may be nested. Each level takes about
	// 2 KB of stack to decode, and more to encode as JSON.
	maxNesting = 10_000
	// maxWire bounds the sum of the sizes of all messages, with nested ones counted
	// again: the JSON of Go types with MarshalJSON is scanned again at every level.
	maxWire = 128 << 20
)

// layout says which fields of a message are messages themselves.
type layout struct {
	fields map[int32]*layout // by number
	entry  bool              // of a map: the generated code does not look at the wire type of key and value
}

var layouts sync.Map // of reflect.Type to *layout

// layoutOf returns the layout of a Go type with protobuf tags.
func layoutOf(t reflect.Type) *layout {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if l, ok := layouts.Load(t); ok {
		return l.(*layout)
	}
	l, _ := layouts.LoadOrStore(t, explore(t, map[reflect.Type]*layout{}))
	return l.(*layout)
}

// explore reads the tags of a struct. Types may contain themselves.
func explore(t reflect.Type, seen map[reflect.Type]*layout) *layout {
	if l := seen[t]; l != nil {
		return l
	}
	l := &layout{fields: map[int32]*layout{}}
	seen[t] = l
	for i := range t.NumField() {
		field := t.Field(i)
		parts := strings.Split(field.Tag.Get("protobuf"), ",") // bytes,8,opt,name=…
		if len(parts) < 2 {
			continue
		}
		number, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			continue
		}
		isMap := field.Type.Kind() == reflect.Map
		element := field.Type
		for element.Kind() == reflect.Pointer || element.Kind() == reflect.Slice || element.Kind() == reflect.Map {
			element = element.Elem()
		}
		switch {
		case element.Kind() != reflect.Struct:
		case isMap:
			l.fields[int32(number)] = &layout{entry: true, fields: map[int32]*layout{2: explore(element, seen)}}
		default:
			l.fields[int32(number)] = explore(element, seen)
		}
	}
	return l
}

// message is a part of the data that is a message.
type message struct {
	layout *layout
	end    int
}

// checkNesting reports whether decoding data takes a bounded stack and time. It
// accepts malformed data: the decoder stops at the same place and returns its error.
func (l *layout) checkNesting(data []byte) bool {
	stack := []message{{l, len(data)}}
	at, work := 0, len(data)
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		if at >= top.end {
			stack = stack[:len(stack)-1]
			continue
		}
		tag, next, ok := varint(data, at, top.end)
		if !ok {
			return true
		}
		number, wire := int32(tag>>3), tag&7 // cut off as generated code does
		inner := top.layout.fields[number]
		if wire != 2 && (!top.layout.entry || number != 1 && number != 2) {
			if at, ok = skip(data, next, top.end, wire); !ok {
				return true
			}
			continue
		}
		size, start, ok := varint(data, next, top.end)
		if !ok || size > uint64(top.end-start) {
			return true
		}
		if at = start; inner == nil {
			at += int(size)
			continue
		}
		stack, work = append(stack, message{inner, start + int(size)}), work+int(size)
		if len(stack) > maxNesting || work > maxWire {
			return false
		}
	}
	return true
}

// skip returns where a value of any wire type but bytes ends.
func skip(data []byte, at, end int, wire uint64) (int, bool) {
	open := 0 // groups, which are obsolete, but skipped by generated code
	for {
		ok := true
		switch wire {
		case 0:
			_, at, ok = varint(data, at, end)
		case 1:
			at += 8
		case 2:
			var size uint64
			if size, at, ok = varint(data, at, end); ok && size <= uint64(end-at) {
				at += int(size)
			} else {
				ok = false
			}
		case 3:
			open++
		case 4:
			open--
		case 5:
			at += 4
		default:
			ok = false
		}
		if !ok || open < 0 || at > end {
			return at, false
		}
		if open == 0 {
			return at, true
		}
		var tag uint64
		if tag, at, ok = varint(data, at, end); !ok {
			return at, false
		}
		wire = tag & 7
	}
}

// varint reads a number as generated code does: what does not fit is cut off.
func varint(data []byte, at, end int) (value uint64, next int, ok bool) {
	for shift := uint(0); shift < 64 && at < end; shift += 7 {
		b := data[at]
		at++
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value, at, true
		}
	}
	return 0, at, false
}
