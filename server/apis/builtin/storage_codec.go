package builtin

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
)

// storageCodec writes protobuf, or JSON for types that have no protobuf, and reads protobuf, JSON and YAML. What it reads
// does not say its kind, as it does not in Kubernetes: the items of a list would
// repeat it.
//
// It sets the defaults of what it reads, as kube-apiserver does: another version of this
// server, kube-apiserver or a client of etcd may have written it. The defaults of kinds
// that files describe take longer than the rest of reading. An object is read several
// times: when it was written, by every update, by caches, by lists without a cache. So
// the codec remembers the bytes that had all defaults when it read them first.
type storageCodec struct {
	runtime.Codec
	// reading makes a codec that sets defaults so.
	reading  func(runtime.ObjectDefaulter) runtime.Codec
	plain    runtime.Codec // sets no defaults
	scheme   *runtime.Scheme
	own      reflect.Type                        // of the objects
	fill     func(runtime.Object) (changed bool) // nil if defaults are cheap
	complete *complete
}

func newStorageCodec(r *Resources, one *Resource) (runtime.Codec, error) {
	sample, mediaType := one.New(), runtime.ContentTypeProtobuf
	if _, ok := sample.(interface{ Marshal() ([]byte, error) }); !ok {
		mediaType = runtime.ContentTypeJSON
	}
	info, ok := runtime.SerializerInfoForMediaType(r.codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil, fmt.Errorf("there is no serializer for %s", mediaType)
	}
	decoder, err := r.storageDecoder(one)
	if err != nil {
		return nil, err
	}
	c := storageCodec{scheme: r.scheme, own: reflect.TypeOf(sample), fill: one.Strategy.fill, complete: r.complete}
	c.reading = func(defaulter runtime.ObjectDefaulter) runtime.Codec {
		return versioning.NewCodec(info.Serializer, decoder, runtime.UnsafeObjectConvertor(r.scheme), r.scheme, r.scheme,
			defaulter, one.version(), internal(one.Group), r.scheme.Name())
	}
	c.Codec = c.reading(r.scheme)
	if c.fill != nil {
		c.plain = c.reading(nil)
	}
	return c, nil
}

// earlierVersions are those in which kube-apiserver 1.37 stores objects of kinds that it
// serves in version 1, so that the release before it can read them. All fields of version 1
// are the same there.
var earlierVersions = map[schema.GroupKind]string{
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:          "v1beta1",
	{Group: "certificates.k8s.io", Kind: "PodCertificateRequest"}:       "v1beta1",
	{Group: "resource.k8s.io", Kind: "DeviceTaintRule"}:                 "v1beta2",
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}: "v1beta1",
}

// storageDecoder reads objects from etcd. Only there can they have an earlier version.
func (r *Resources) storageDecoder(one *Resource) (runtime.Decoder, error) {
	version, ok := earlierVersions[schema.GroupKind{Group: one.Group, Kind: one.Kind}]
	if !ok {
		return r.codecs.UniversalDeserializer(), nil
	}
	s, err := newScheme([]Resource{*one})
	if err != nil {
		return nil, err
	}
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: one.Group, Version: version, Kind: one.Kind}, one.New())
	return newCodecs(s).UniversalDeserializer(), nil
}

// Decode implements runtime.Decoder.
func (c storageCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := c.decode(data, defaults, into)
	if err == nil {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj, kind, err
}

func (c storageCodec) decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if c.fill == nil {
		return c.Codec.Decode(data, defaults, into)
	}
	sum := c.complete.sum(c.own, data)
	if c.complete.has(sum) {
		return c.plain.Decode(data, defaults, into)
	}
	o := &observer{storageCodec: &c}
	obj, kind, err := c.reading(o).Decode(data, defaults, into)
	if err == nil && o.complete {
		c.complete.add(sum)
	}
	return obj, kind, err
}

// observer sets the defaults of one object, and tells whether it had them all.
type observer struct {
	*storageCodec
	complete bool
}

// Default implements runtime.ObjectDefaulter. An object that was written in another
// version has defaults of its own: it is never remembered.
func (o *observer) Default(obj runtime.Object) {
	if reflect.TypeOf(obj) != o.own {
		o.scheme.Default(obj)
		return
	}
	o.complete = !o.fill(obj)
}
