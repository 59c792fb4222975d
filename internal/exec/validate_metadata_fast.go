package exec

import (
	"bytes"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// The fields of ObjectMeta by their rank in objectMetaStructure.
const (
	annotationsField = iota
	creationTimestampField
	deletionGracePeriodSecondsField
	deletionTimestampField
	finalizersField
	generateNameField
	generationField
	labelsField
	managedFieldsField
	nameField
	namespaceField
	ownerReferencesField
	resourceVersionField
	selfLinkField
	uidField
	metaFieldCount
)

// metaFields are the fields of one metadata object.
type metaFields struct {
	d  *jsondoc.Doc
	at [metaFieldCount]jsondoc.Value // 0 for a field that is missing or null
}

// read finds the fields of v. It reports false if there is any whose value
// might not decode: what the values mean is looked at only after.
func (m *metaFields) read(d *jsondoc.Doc, v jsondoc.Value) bool {
	m.d = d
	if d.Kind(v) == jsondoc.Null {
		return true
	}
	if d.Kind(v) != jsondoc.Object {
		return false
	}
	end := d.Next(v)
	for k := v + 1; k < end; k = d.Next(k + 1) {
		rank := objectMetaStructure.names.Lookup(d.Key(k))
		if rank < 0 || m.at[rank] != 0 {
			return false
		}
		if d.Kind(k+1) == jsondoc.Null {
			continue
		}
		if !shaped(d, k+1, objectMetaStructure.types[rank]) {
			return false
		}
		m.at[rank] = k + 1
	}
	return true
}

// shaped reports whether v certainly decodes as a field of type t.
func shaped(d *jsondoc.Doc, v jsondoc.Value, t metaType) bool {
	kind := d.Kind(v)
	switch t {
	case optionalString, requiredString:
		return kind == jsondoc.String
	case optionalInt, pointerInt:
		if kind != jsondoc.Number || d.Raw(v)[0] == '-' {
			return false
		}
		_, ok := d.Int64(v)
		return ok
	case pointerBool:
		return kind == jsondoc.True || kind == jsondoc.False
	case timestamp:
		return kind == jsondoc.String && isTimestamp(d.Raw(v))
	case stringList:
		return kind == jsondoc.Array && onlyStrings(d, v, 1)
	case stringMap:
		return kind == jsondoc.Object && onlyStrings(d, v, 2)
	case ownerReferences:
		return allShaped(d, v, ownerReferenceStructure)
	case managedFields:
		return allShaped(d, v, managedFieldsStructure)
	case anyObject:
		return kind == jsondoc.Object
	}
	return false
}

// onlyStrings looks at every stride-th value of a container, which with only
// strings in it are its items or the values of its members.
func onlyStrings(d *jsondoc.Doc, v, stride jsondoc.Value) bool {
	end := d.Next(v)
	for c := v + stride; c < end; c += stride {
		if d.Kind(c) != jsondoc.String {
			return false
		}
	}
	return true
}

func allShaped(d *jsondoc.Doc, v jsondoc.Value, s *structure) bool {
	if d.Kind(v) != jsondoc.Array {
		return false
	}
	end := d.Next(v)
	for item := v + 1; item < end; item = d.Next(item) {
		if d.Kind(item) != jsondoc.Object {
			return false
		}
		last := d.Next(item)
		for k := item + 1; k < last; k = d.Next(k + 1) {
			rank := s.names.Lookup(d.Key(k))
			if rank < 0 || d.Kind(k+1) != jsondoc.Null && !shaped(d, k+1, s.types[rank]) {
				return false
			}
		}
	}
	return true
}

// embeddedValid reports whether the apiVersion, kind and metadata of the
// embedded resource v are certainly valid. If it says no, embeddedErrors
// decides.
func embeddedValid(d *jsondoc.Doc, v jsondoc.Value) bool {
	if d.Kind(v) != jsondoc.Object {
		return true
	}
	version, kind := false, false
	end := d.Next(v)
	for k := v + 1; k < end; k = d.Next(k + 1) {
		key := d.Key(k)
		if !isMetaField(key) {
			continue
		}
		ok := false
		switch string(key) {
		case "apiVersion":
			version = true
			s, plain := plainText(d, k+1)
			ok = plain && len(s) > 0 && bytes.Count(s, slash) <= 1
		case "kind":
			kind = true
			s, plain := plainText(d, k+1)
			ok = plain && isKind(s)
		case "metadata":
			var m metaFields
			ok = m.read(d, k+1) && m.embeddedNames() && m.common() && m.finalizers()
		}
		if !ok {
			return false
		}
	}
	return version && kind
}

// rootMetadataValid reports whether the metadata of the object itself is
// certainly valid: for a new object, or, if old is not nil, for a change of
// old. If it says no, RootMetadata decides.
func rootMetadataValid(d, old *jsondoc.Doc, namespaced bool) bool {
	at, ok := d.Get(jsondoc.Root, "metadata")
	if !ok {
		return false
	}
	var m metaFields
	if !m.read(d, at) {
		return false
	}
	if old == nil {
		return m.rootNames(namespaced) && m.common() && m.finalizers()
	}
	at, ok = old.Get(jsondoc.Root, "metadata")
	if !ok {
		return false
	}
	var before metaFields
	return before.read(old, at) && m.follows(&before) && m.common()
}

// text returns the value of a string field, nothing if it is missing. It
// reports false if that would take decoding.
func (m *metaFields) text(field int) (s []byte, ok bool) {
	if m.at[field] == 0 {
		return nil, true
	}
	return plainText(m.d, m.at[field])
}

func plainText(d *jsondoc.Doc, v jsondoc.Value) (s []byte, ok bool) {
	if d.Kind(v) != jsondoc.String || !d.Plain(v) {
		return nil, false
	}
	raw := d.Raw(v)
	return raw[1 : len(raw)-1], true
}

func (m *metaFields) embeddedNames() bool {
	name, ok1 := m.text(nameField)
	prefix, ok2 := m.text(generateNameField)
	namespace, ok3 := m.text(namespaceField)
	return ok1 && ok2 && ok3 &&
		!bytes.ContainsAny(name, "/%") && string(name) != "." && string(name) != ".." &&
		!bytes.ContainsAny(prefix, "/%") &&
		(len(namespace) == 0 || isLabel(namespace))
}

func (m *metaFields) rootNames(namespaced bool) bool {
	name, ok1 := m.text(nameField)
	prefix, ok2 := m.text(generateNameField)
	namespace, ok3 := m.text(namespaceField)
	if !ok1 || !ok2 || !ok3 || !isSubdomain(name, lowerAlnum) || isLabel(namespace) != namespaced || !namespaced && len(namespace) > 0 {
		return false
	}
	// What is generated is appended to the prefix, so it may end in a dash.
	prefix = bytes.TrimSuffix(prefix, dash)
	return m.at[generateNameField] == 0 || isSubdomain(prefix, lowerAlnum)
}

// follows reports whether the fields that cannot change have not, and those
// that change in one direction only have done so.
func (m *metaFields) follows(old *metaFields) bool {
	for _, f := range [...]int{nameField, namespaceField, uidField, creationTimestampField, deletionTimestampField, deletionGracePeriodSecondsField} {
		if m.at[f] == 0 && old.at[f] == 0 {
			continue
		}
		if m.at[f] == 0 || old.at[f] == 0 || !bytes.Equal(m.d.Raw(m.at[f]), old.d.Raw(old.at[f])) {
			return false
		}
	}
	if m.at[resourceVersionField] == 0 || len(m.d.Raw(m.at[resourceVersionField])) == len(`""`) {
		return false
	}
	var before, after int64
	if v := old.at[generationField]; v != 0 {
		before, _ = old.d.Int64(v)
	}
	if v := m.at[generationField]; v != 0 {
		after, _ = m.d.Int64(v)
	}
	return after >= before && (old.at[deletionTimestampField] == 0 || m.noNewFinalizers(old))
}

// maxFinalizers is how many finalizers are compared one with another.
const maxFinalizers = 16

// noNewFinalizers reports whether every finalizer was there before.
func (m *metaFields) noNewFinalizers(old *metaFields) bool {
	list := m.at[finalizersField]
	if list == 0 {
		return true
	}
	before := old.at[finalizersField]
	if before == 0 || m.d.Len(list) > maxFinalizers || old.d.Len(before) > maxFinalizers {
		return m.d.Len(list) == 0
	}
	for v, end := list+1, m.d.Next(list); v < end; v++ {
		found := false
		for o, last := before+1, old.d.Next(before); o < last && !found; o++ {
			found = bytes.Equal(m.d.Raw(v), old.d.Raw(o))
		}
		if !found {
			return false
		}
	}
	return true
}

// common checks what is checked on creation and on update alike.
func (m *metaFields) common() bool {
	return (m.at[labelsField] == 0 || m.labels()) &&
		(m.at[annotationsField] == 0 || m.annotations()) &&
		(m.at[ownerReferencesField] == 0 || m.owners()) &&
		(m.at[managedFieldsField] == 0 || m.managers())
}

func (m *metaFields) labels() bool {
	d, v := m.d, m.at[labelsField]
	end := d.Next(v)
	for k := v + 1; k < end; k += 2 {
		value, ok := plainText(d, k+1)
		if !ok || !isQualifiedName(d.Key(k), lowerAlnum) || len(value) > 0 && !isLabelName(value) {
			return false
		}
	}
	return true
}

// maxAnnotations is the size of all annotations together that is allowed.
const maxAnnotations = 256 << 10

func (m *metaFields) annotations() bool {
	d, v := m.d, m.at[annotationsField]
	size := 0
	end := d.Next(v)
	for k := v + 1; k < end; k += 2 {
		key := d.Key(k)
		if !isQualifiedName(key, lowerAlnum|upper) {
			return false
		}
		n := len(d.Raw(k+1)) - 2
		if !d.Plain(k + 1) {
			n *= 3 // a byte that is no UTF-8 decodes to three; escapes only shrink
		}
		if size += len(key) + n; size > maxAnnotations {
			return false
		}
	}
	return true
}

func (m *metaFields) owners() bool {
	d, v := m.d, m.at[ownerReferencesField]
	controllers := 0
	end := d.Next(v)
	for item := v + 1; item < end; item = d.Next(item) {
		var event, coreV1 bool
		required := 0
		last := d.Next(item)
		for k := item + 1; k < last; k = d.Next(k + 1) {
			key := string(d.Key(k)) // a known field, short enough for the stack
			switch key {
			case "controller":
				if d.Kind(k+1) == jsondoc.True {
					controllers++
				}
				continue
			case "blockOwnerDeletion":
				continue
			}
			s, ok := plainText(d, k+1)
			if !ok || len(s) == 0 {
				return false
			}
			required++
			switch key {
			case "apiVersion":
				if slashes := bytes.Count(s, slash); slashes > 1 || s[len(s)-1] == '/' {
					return false
				}
				coreV1 = string(s) == "v1" || string(s) == "/v1"
			case "kind":
				event = string(s) == "Event"
			}
		}
		if required != ownerReferenceStructure.required || event && coreV1 {
			return false
		}
	}
	return controllers <= 1
}

// finalizers checks the names, which happens on creation only.
func (m *metaFields) finalizers() bool {
	v := m.at[finalizersField]
	if v == 0 {
		return true
	}
	orphan, foreground := false, false
	for c, end := v+1, m.d.Next(v); c < end; c++ {
		s, ok := plainText(m.d, c)
		if !ok || !isQualifiedName(s, lowerAlnum) {
			return false
		}
		orphan = orphan || string(s) == "orphan"
		foreground = foreground || string(s) == "foregroundDeletion"
	}
	return !orphan || !foreground
}

func (m *metaFields) managers() bool {
	d, v := m.d, m.at[managedFieldsField]
	end := d.Next(v)
	for item := v + 1; item < end; item = d.Next(item) {
		operation := false
		last := d.Next(item)
		for k := item + 1; k < last; k = d.Next(k + 1) {
			if kind := d.Kind(k + 1); kind != jsondoc.String {
				continue
			}
			s, ok := plainText(d, k+1)
			if !ok {
				return false
			}
			switch string(d.Key(k)) {
			case "operation":
				if string(s) != "Apply" && string(s) != "Update" {
					return false
				}
				operation = true
			case "fieldsType":
				ok = len(s) == 0 || string(s) == "FieldsV1"
			case "manager":
				ok = isManager(s)
			case "subresource":
				ok = len(s) <= 256
			}
			if !ok {
				return false
			}
		}
		if !operation {
			return false
		}
	}
	return true
}

var (
	slash = []byte{'/'}
	dash  = []byte{'-'}
)

// class says what an ASCII character may be in.
type class uint8

const (
	lowerAlnum class = 1 << iota
	upper
	punctuation // - _ . within the names of labels
)

var classes = func() (table [256]class) {
	for c := range table {
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			table[c] = lowerAlnum
		case 'A' <= c && c <= 'Z':
			table[c] = upper
		case c == '-' || c == '_' || c == '.':
			table[c] = punctuation
		}
	}
	return table
}()

// isSubdomain reports whether s is a DNS-1123 subdomain of the given letters.
func isSubdomain(s []byte, letters class) bool {
	if len(s) > 253 {
		return false
	}
	within := false // after a letter or digit of a label
	for i, c := range s {
		switch {
		case classes[c]&letters != 0:
			within = true
		case c == '-' && i > 0 && s[i-1] != '.':
			within = false
		case c == '.' && within:
			within = false
		default:
			return false
		}
	}
	return within
}

// isLabel reports whether s is a DNS-1123 label.
func isLabel(s []byte) bool {
	return len(s) <= 63 && isSubdomain(s, lowerAlnum) && bytes.IndexByte(s, '.') < 0
}

// isKind reports whether s is a DNS-1035 label but for its case.
func isKind(s []byte) bool {
	return len(s) > 0 && len(s) <= 63 && (s[0] < '0' || s[0] > '9') && isSubdomain(s, lowerAlnum|upper) && bytes.IndexByte(s, '.') < 0
}

// isLabelName reports whether s can be a label's value, or its key without
// the prefix.
func isLabelName(s []byte) bool {
	const alnum = lowerAlnum | upper
	if len(s) == 0 || len(s) > 63 || classes[s[0]]&alnum == 0 || classes[s[len(s)-1]]&alnum == 0 {
		return false
	}
	for _, c := range s {
		if classes[c] == 0 {
			return false
		}
	}
	return true
}

// isQualifiedName reports whether s is a name with an optional prefix, a
// subdomain of the given letters, before a slash.
func isQualifiedName(s []byte, letters class) bool {
	if i := bytes.IndexByte(s, '/'); i >= 0 {
		return isSubdomain(s[:i], letters) && isLabelName(s[i+1:])
	}
	return isLabelName(s)
}

// isManager reports whether s is the name of a field manager, of ASCII only.
func isManager(s []byte) bool {
	if len(s) > 128 {
		return false
	}
	for _, c := range s {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
