package oracle

import (
	"context"
	"encoding/json"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// StoreCRD returns what the reference stores of a CRD that it has accepted, as v1: the strategy prepares it, and the
// registry completes its metadata. Old is nil if the CRD is created.
func StoreCRD(doc, old []byte) ([]byte, error) {
	crd, err := internalCRD(doc)
	if err != nil {
		return nil, err
	}
	strategy := customresourcedefinition.NewStrategy(runtime.NewScheme())
	if old == nil {
		crd.UID, crd.CreationTimestamp, crd.ResourceVersion = UID, Created, "7"
		crd.DeletionTimestamp, crd.DeletionGracePeriodSeconds = nil, nil
		strategy.PrepareForCreate(context.Background(), crd)
	} else {
		before, err := internalCRD(old)
		if err != nil {
			return nil, err
		}
		keepSystemFields(crd, before)
		strategy.PrepareForUpdate(context.Background(), crd, before)
	}
	return storedV1(crd)
}

func storedV1(crd *apiextensions.CustomResourceDefinition) ([]byte, error) {
	out := &apiextensionsv1.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(crd, out, nil); err != nil {
		return nil, err
	}
	out.TypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}
	return json.Marshal(out)
}
