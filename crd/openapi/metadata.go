package openapi

import "github.com/espalier-dev/espalier/internal/syntax"

// metaRef is where the schema of metadata stands in a document.
const metaRef = "#/definitions/ObjectMeta"

// metadata writes the property metadata of a resource; own is what its schema
// says about it, or nil.
func (w *writer) metadata(own *syntax.Schema, clusterScoped bool) {
	w.key("metadata")
	w.object(func() {
		description := "What identifies and labels this object."
		if own != nil && own.Description != "" {
			description = own.Description
		}
		w.text("description", description)
		w.key("allOf")
		w.array(func() {
			w.next()
			w.object(func() { w.text("$ref", metaRef) })
			if own != nil && (len(own.Properties) > 0 || len(own.Required) > 0) {
				w.next()
				w.ownMetadata(own)
			}
			if clusterScoped && w.options.Strict {
				w.next()
				w.object(func() {
					w.key("properties")
					w.object(func() { w.bool("namespace", false) })
				})
			}
		})
	})
}

// ownMetadata writes what a schema says about metadata, which never means that
// other fields of it are pruned.
func (w *writer) ownMetadata(own *syntax.Schema) {
	strict := w.options.Strict
	w.options.Strict = false
	w.schema(own, place{})
	w.options.Strict = strict
}

// embedded writes the fields of a resource within another. Servers also accept one
// without any field, but that is a mistake.
func (w *writer) embedded(s *syntax.Schema) {
	w.texts("required", union([]string{"apiVersion", "kind"}, w.required(s)))
	w.key("properties")
	w.object(func() {
		for _, name := range []string{"apiVersion", "kind"} {
			w.key(name)
			if own := s.Property(name); own != nil {
				w.schema(own, place{})
			} else {
				w.object(func() { w.text("type", "string") })
			}
		}
		w.metadata(s.Property("metadata"), false)
		w.properties(s, "apiVersion", "kind", "metadata")
	})
}

// `definitions` writes the schemas that the document refers to.
func (w *writer) definitions(more func()) {
	w.key("definitions")
	w.object(func() {
		more()
		w.key("ObjectMeta")
		w.objectMeta()
	})
}

// metaField is a field of metadata.
type metaField struct {
	name, kind, description string
}

// The kinds of fields of metadata that are more than a type.
const (
	mapKind   = "map"
	listKind  = "list"
	ownerKind = "owners"
	anyKind   = "managers"
)

var metaFields = []metaField{
	{"name", "string", "The name of the object, unique for its kind within its namespace. It cannot be changed."},
	{"generateName", "string", "If there is no name, the server makes one that begins like this."},
	{"namespace", "string", "The namespace that the object is in. It cannot be changed."},
	{"labels", mapKind, "Names and values to select objects by."},
	{"annotations", mapKind, "Names and values for tools to store what they need. Objects cannot be selected by them."},
	{"finalizers", listKind, "Controllers that must act before the object is deleted. Each removes its entry when it is done."},
	{"ownerReferences", ownerKind, "The objects that this one belongs to. When all of them are gone, it is deleted."},
	{"uid", "string", "Identifies the object over all time. The server sets it."},
	{"resourceVersion", "string", "Changes with every change of the object. The server sets it; sent back, it prevents overwriting the changes of others."},
	{"generation", "integer", "Counts the changes of what is wanted. The server sets it."},
	{"creationTimestamp", "string", "When the object was created. The server sets it."},
	{"deletionTimestamp", "string", "When the object is to be deleted. The server sets it."},
	{"deletionGracePeriodSeconds", "integer", "How many seconds the object has until it is deleted. The server sets it."},
	{"managedFields", anyKind, "Which client set which fields. The server maintains it."},
	{"selfLink", "string", "No longer in use."},
}

var ownerFields = []metaField{
	{"apiVersion", "string", "The API group and version of the owner."},
	{"kind", "string", "The kind of the owner."},
	{"name", "string", "The name of the owner."},
	{"uid", "string", "The UID of the owner."},
	{"controller", "boolean", "Whether the owner manages this object."},
	{"blockOwnerDeletion", "boolean", "Whether the owner stays until this object is gone, if it is deleted in the foreground."},
}

// objectMeta writes the schema of metadata. Null is the same as leaving a field
// out; tools write it for creationTimestamp.
func (w *writer) objectMeta() {
	w.object(func() {
		if w.options.Strict {
			w.text("type", "object")
		} else {
			w.texts("type", []string{"object", "null"})
		}
		w.metaFields(metaFields)
	})
}

func (w *writer) metaFields(list []metaField) {
	w.key("properties")
	w.object(func() {
		for _, f := range list {
			w.key(f.name)
			w.object(func() {
				w.text("description", f.description)
				w.metaType(f.kind)
			})
		}
	})
	if w.options.Strict {
		w.bool("additionalProperties", false)
	}
}

func (w *writer) metaType(kind string) {
	item := func(key string, fill func()) {
		w.key(key)
		w.object(fill)
	}
	switch kind {
	case mapKind:
		w.texts("type", []string{"object", "null"})
		item("additionalProperties", func() { w.texts("type", []string{"string", "null"}) })
	case listKind:
		w.texts("type", []string{"array", "null"})
		item("items", func() { w.text("type", "string") })
	case ownerKind:
		w.texts("type", []string{"array", "null"})
		item("items", func() {
			w.text("type", "object")
			w.texts("required", []string{"apiVersion", "kind", "name", "uid"})
			w.metaFields(ownerFields)
		})
	case anyKind:
		w.texts("type", []string{"array", "null"})
		item("items", func() { w.text("type", "object") })
	default:
		w.texts("type", []string{kind, "null"})
	}
}
