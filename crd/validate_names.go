package crd

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/operation"
	meta "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dns "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// prepare makes of what was sent what an API server is going to store.
func (c *checker) prepare() {
	m := c.new
	if c.old == nil {
		m.meta.Generation = 1
		m.accepted, m.stored, m.hasStored, m.established = Names{}, nil, false, false
		m.addStored()
		return
	}
	o := c.old
	m.accepted, m.stored, m.hasStored, m.established = o.accepted, o.stored, o.hasStored, o.established
	m.addStored()
	n, before := &m.meta, &o.meta
	n.Generation = before.Generation
	if n.UID == "" {
		n.UID = before.UID
	}
	if n.ResourceVersion == "" {
		// A patch does not name one, and the server takes the stored one.
		n.ResourceVersion = "0"
	}
	if !before.CreationTimestamp.IsZero() {
		n.CreationTimestamp = before.CreationTimestamp
	}
	if !before.DeletionTimestamp.IsZero() {
		n.DeletionTimestamp = before.DeletionTimestamp
	}
	if n.DeletionGracePeriodSeconds == nil {
		n.DeletionGracePeriodSeconds = before.DeletionGracePeriodSeconds
	}
}

const mismatch = `must be spec.names.plural+"."+spec.group`

// metadata checks the metadata of the CRD itself.
func (c *checker) metadata() {
	name := func(name string, prefix bool) []string {
		list := meta.NameIsDNSSubdomain(name, prefix)
		if name != c.new.Plural+"."+c.new.Group {
			list = append(list, mismatch)
		}
		return list
	}
	c.shorten(&c.new.meta)
	kind, old := operation.Create, (*metav1.ObjectMeta)(nil)
	if c.old != nil {
		c.shorten(&c.old.meta)
		kind, old = operation.Update, &c.old.meta
	}
	for i, e := range meta.ValidateObjectMetaDeclaratively(context.Background(), kind, &c.new.meta, old, false, name, field.NewPath("metadata"), true) {
		r := objectMetadata
		if e.Detail == mismatch {
			r = nameMismatch
		}
		at := c.at("metadata").as(e.Field)
		if i < maxLocated {
			at = c.metadataSpot(e)
		}
		c.add(r, at, e.Type, e.BadValue, e.Detail)
	}
	c.approval()
}

// maxOwners bounds the owners, and the managers of fields, that are looked at:
// validation compares all errors about them with each other.
const maxOwners = 200

func (c *checker) shorten(m *metav1.ObjectMeta) {
	if len(m.OwnerReferences) > maxOwners {
		m.OwnerReferences, c.shortened = m.OwnerReferences[:maxOwners], true
	}
	if len(m.ManagedFields) > maxOwners {
		m.ManagedFields, c.shortened = m.ManagedFields[:maxOwners], true
	}
}

// maxLocated is how many errors in metadata are given their exact place: finding
// one takes time in proportion to the labels, annotations and owners around it.
const maxLocated = 100

// metadataSpot finds the place of an error in metadata. Those about keys have
// the key as their bad value.
func (c *checker) metadataSpot(e *field.Error) spot {
	s := c.at()
	rest := e.Field
	for rest != "" {
		var name string
		if key, tail, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok && rest[0] == '[' {
			name, rest = key, tail
		} else if i := strings.IndexAny(rest, ".["); i > 0 {
			name, rest = rest[:i], rest[i:]
		} else {
			name, rest = rest, ""
		}
		rest = strings.TrimPrefix(rest, ".")
		if i, err := strconv.Atoi(name); err == nil && !s.missing && c.doc.Kind(s.at) == jsondoc.Array {
			if v, ok := c.doc.Index(s.at, i); ok {
				s.where = s.where.item(i, v)
			}
			continue
		}
		s.where = s.where.to(name)
	}
	if key, ok := e.BadValue.(string); ok && !s.missing {
		if _, ok := c.doc.Get(s.at, key); ok {
			s.where = s.where.to(key)
		}
	}
	return s.as(e.Field)
}

const approvedAnnotation = "api-approved.kubernetes.io"

type approvalState uint8

const (
	approvalInvalid approvalState = iota
	approvalGiven
	approvalBypassed
	approvalMissing
)

func approvalOf(annotation string) approvalState {
	if annotation == "" {
		return approvalMissing
	}
	if strings.HasPrefix(annotation, "unapproved") {
		return approvalBypassed
	}
	if u, err := url.ParseRequestURI(annotation); err == nil && u.Host != "" && u.Scheme != "" {
		return approvalGiven
	}
	return approvalInvalid
}

// approval checks the annotation for groups that belong to the community.
func (c *checker) approval() {
	g := "." + c.new.Group
	if !strings.HasSuffix(g, ".k8s.io") && !strings.HasSuffix(g, ".kubernetes.io") {
		return
	}
	value := c.new.meta.Annotations[approvedAnnotation]
	state := approvalOf(value)
	if c.old != nil && approvalOf(c.old.meta.Annotations[approvedAnnotation]) == state {
		return
	}
	s := c.at("metadata", "annotations", approvedAnnotation).as("metadata.annotations[" + approvedAnnotation + "]")
	const must, see = "protected groups must have approval annotation " + `"` + approvedAnnotation + `"`, ", see https://github.com/kubernetes/enhancements/pull/1111"
	switch state {
	case approvalMissing:
		c.required(apiApproval, s, must+see)
	case approvalInvalid:
		c.invalid(apiApproval, s, value, must+` with either a URL or a reason starting with "unapproved"`+see)
	}
}

// allNames checks names in spec or status.
func (c *checker) allNames(n *Names, s spot) {
	for _, x := range []struct {
		field, value string
		mixed        bool
	}{{"plural", n.Plural, false}, {"singular", n.Singular, false}, {"kind", n.Kind, true}, {"listKind", n.ListKind, true}} {
		value, prefix := x.value, ""
		if x.mixed {
			value, prefix = strings.ToLower(value), "may have mixed case, but should otherwise match: "
		}
		if value == "" {
			continue
		}
		if errs := dns.IsDNS1035Label(value); len(errs) > 0 {
			c.invalid(namesInvalid, s.to(x.field), x.value, prefix+strings.Join(errs, ","))
		}
	}
	c.words(n.ShortNames, s.to("shortNames"))
	c.words(n.Categories, s.to("categories"))
	if n.Kind != "" && n.Kind == n.ListKind {
		c.invalid(kindListKindEqual, s.to("listKind"), n.ListKind, "kind and listKind may not be the same")
	}
}

func (c *checker) words(list []string, s spot) {
	at := s.values()
	for i, text := range list {
		if errs := dns.IsDNS1035Label(text); len(errs) > 0 {
			c.invalid(namesInvalid, s.item(i, at.get(i)), text, strings.Join(errs, ","))
		}
	}
}

// status checks what a server has written itself.
func (c *checker) status() {
	s := c.at("status")
	c.allNames(&c.new.accepted, s.to("acceptedNames")) // it reports nothing about names that are not accepted yet
	s = s.to("storedVersions")
	if len(c.new.stored) == 0 {
		c.invalid(storedVersions, s, written(c.new.stored, c.new.hasStored), "must have at least one stored version")
		return
	}
	missing := make(map[string]int, len(c.new.stored))
	for i, name := range c.new.stored {
		missing[name] = i
	}
	for i := range c.new.versions {
		v := &c.new.versions[i]
		if _, ok := missing[v.Name]; ok {
			delete(missing, v.Name)
		} else if v.Storage {
			c.invalid(storedVersions, s, written(c.new.stored, true), "must have the storage version "+v.Name)
		}
	}
	values := s.values()
	for name, i := range missing {
		at := s
		if c.o.Verbatim {
			at = s.item(i, values.get(i))
		} else {
			at.where = c.at("spec", "versions").where // the place to put the version back
		}
		c.invalid(storedVersions, at.as(s.path+"["+strconv.Itoa(i)+"]"), name, "missing from spec.versions; "+name+
			" was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in "+name+
			" and removes "+name+" from status.storedVersions")
	}
}

// written returns a list as API servers show it: null if it is left out.
func written(list []string, written bool) []string {
	if written && list == nil {
		return []string{}
	}
	return list
}
