package garbagecollector

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/internal/object"
)

// id is a UID in 16 bytes: of a UUID those that it is the text of, of any other
// text a sum. Servers give UUIDs.
type id [16]byte

// uuidLength is that of the text of a UUID.
const uuidLength = 36

func idOf(uid types.UID) (i id) {
	text := string(uid)
	// Only the one form that a UUID is written in: two texts are never the same id.
	if parsed, err := uuid.Parse(text); err == nil && len(text) == uuidLength && text == strings.ToLower(text) {
		return id(parsed)
	}
	sum := sha256.Sum256([]byte(text))
	copy(i[:], sum[:])
	return i
}

// seen is what matters of a stored object.
type seen struct {
	id     id
	owners []metav1.OwnerReference
	state  state
}

// state is what the object waits for.
type state uint8

const (
	deleting   state = 1 << iota // has a deletionTimestamp
	foreground                   // stays until its dependents have gone
	orphaning                    // stays until its dependents do not refer to it any more
)

// waits reports whether an object is being deleted and waits for its dependents.
func (s state) waits(how state) bool { return s&deleting != 0 && s&how != 0 }

// kept reports whether an object belongs into the graph.
func (s *seen) kept() bool { return len(s.owners) > 0 || s.state.waits(foreground|orphaning) }

// maxOwners bounds the references of an object that are followed. API servers
// have no limit of their own.
const maxOwners = 10_000

var (
	protobufMagic = []byte("k8s\x00")
	errNoUID      = errors.New("there is no uid")
)

// read returns what matters of the bytes that an object is stored as: JSON, or
// protobuf as API servers write it.
func read(stored []byte) (seen, error) {
	m, err := metadataOf(stored)
	if err != nil {
		return seen{}, err
	}
	uid := m.GetUID()
	if uid == "" {
		return seen{}, errNoUID
	}
	s := seen{id: idOf(uid), owners: m.GetOwnerReferences()}
	if len(s.owners) > maxOwners {
		return seen{}, fmt.Errorf("%d owner references: no more than %d are followed", len(s.owners), maxOwners)
	}
	if m.GetDeletionTimestamp() != nil {
		s.state |= deleting
		finalizers := m.GetFinalizers()
		if slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
			s.state |= foreground
		}
		if slices.Contains(finalizers, metav1.FinalizerOrphanDependents) {
			s.state |= orphaning
		}
	}
	return s, nil
}

// described is what read asks for.
type described interface {
	GetUID() types.UID
	GetOwnerReferences() []metav1.OwnerReference
	GetFinalizers() []string
	GetDeletionTimestamp() *metav1.Time
}

func metadataOf(stored []byte) (described, error) {
	if bytes.HasPrefix(stored, protobufMagic) {
		return fromProtobuf(stored[len(protobufMagic):])
	}
	// API servers end what they store with a line feed.
	if o, err := object.FromJSON(bytes.TrimSuffix(stored, []byte("\n"))); err == nil {
		return o, nil
	}
	// Others write JSON with spaces, and fields in another order.
	var o struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(stored, &o); err != nil {
		return nil, fmt.Errorf("neither protobuf nor JSON of an object: %w", err)
	}
	return &o.Metadata, nil
}

// fromProtobuf reads the first field, which in all types is the metadata, and
// skips the others.
func fromProtobuf(data []byte) (described, error) {
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(data); err != nil {
		return nil, fmt.Errorf("protobuf of an object: %w", err)
	}
	var o metav1.PartialObjectMetadata
	if err := o.Unmarshal(envelope.Raw); err != nil {
		return nil, fmt.Errorf("protobuf of %s: %w", envelope.Kind, err)
	}
	return &o.ObjectMeta, nil
}
