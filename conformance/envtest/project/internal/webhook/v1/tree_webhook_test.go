package v1

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orchardv1 "example.com/orchard/api/v1"
	orchardv1beta1 "example.com/orchard/api/v1beta1"
)

var _ = Describe("Tree Webhook", func() {
	plant := func(name string, spec orchardv1.TreeSpec) (*orchardv1.Tree, error) {
		tree := &orchardv1.Tree{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
		return tree, k8sClient.Create(ctx, tree)
	}

	It("gives a tree a form", func() {
		tree, err := plant("russet", orchardv1.TreeSpec{Variety: "Egremont Russet"})
		Expect(err).NotTo(HaveOccurred())
		Expect(tree.Spec.Form).To(Equal("Cordon"))
	})

	It("keeps the form that a tree has", func() {
		tree, err := plant("fig", orchardv1.TreeSpec{Variety: "Brown Turkey", Form: "Fan"})
		Expect(err).NotTo(HaveOccurred())
		Expect(tree.Spec.Form).To(Equal("Fan"))
	})

	It("refuses a tree that cannot grow", func() {
		_, err := plant("giant", orchardv1.TreeSpec{Variety: "Bramley", HeightCentimetres: 900})
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("a cordon is at most 250 cm high")))
	})

	It("refuses to graft", func() {
		tree, err := plant("damson", orchardv1.TreeSpec{Variety: "Merryweather"})
		Expect(err).NotTo(HaveOccurred())
		tree.Spec.Variety = "Victoria"
		err = k8sClient.Update(ctx, tree)
		Expect(err).To(MatchError(ContainSubstring("spec.variety: Forbidden: plant another tree instead")))
	})

	It("converts between versions", func() {
		tree, err := plant("quince", orchardv1.TreeSpec{Variety: "Vranja", HeightCentimetres: 200})
		Expect(err).NotTo(HaveOccurred())
		old := &orchardv1beta1.Tree{}
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(tree), old)).To(Succeed())
		Expect(old.Spec).To(Equal(orchardv1beta1.TreeSpec{Variety: "Vranja", Form: "Cordon", HeightMetres: 2}))

		old.Spec.HeightMetres = 1
		Expect(k8sClient.Update(ctx, old)).To(Succeed())
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(tree), tree)).To(Succeed())
		Expect(tree.Spec.HeightCentimetres).To(BeEquivalentTo(100))
	})
})
