package controller

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	orchardv1 "example.com/orchard/api/v1"
)

var _ = Describe("Tree Controller", Ordered, func() {
	const (
		timeout  = 30 * time.Second
		interval = 20 * time.Millisecond
	)
	key := types.NamespacedName{Namespace: "default", Name: "pippin"}
	labelKey := types.NamespacedName{Namespace: "default", Name: "pippin-label"}

	It("labels a new tree", func() {
		tree := &orchardv1.Tree{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Spec:       orchardv1.TreeSpec{Variety: "Cox's Orange Pippin", Form: "Fan"},
		}
		Expect(k8sClient.Create(ctx, tree)).To(Succeed())
		Expect(tree.Spec.HeightCentimetres).To(BeEquivalentTo(180), "the default of the schema")

		label := &corev1.ConfigMap{}
		Eventually(func() error { return k8sClient.Get(ctx, labelKey, label) }, timeout, interval).Should(Succeed())
		Expect(label.Data).To(Equal(map[string]string{"variety": "Cox's Orange Pippin", "form": "Fan", "height": "180 cm"}))
		Expect(label.OwnerReferences).To(ConsistOf(metav1.OwnerReference{
			APIVersion: "orchard.example.com/v1", Kind: "Tree", Name: tree.Name, UID: tree.UID,
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}))
	})

	It("says so in the status", func() {
		tree := &orchardv1.Tree{}
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key, tree)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(tree.Status.Conditions, conditionLabelled)).To(BeTrue())
		}, timeout, interval).Should(Succeed())
		Expect(tree.Status.Label).To(Equal("pippin-label"))
		Expect(tree.Status.ObservedGeneration).To(Equal(tree.Generation))
		Expect(tree.Finalizers).To(ConsistOf(uproot))
	})

	It("writes a new label when the tree changes", func() {
		tree := &orchardv1.Tree{}
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key, tree)).To(Succeed())
			tree.Spec.HeightCentimetres = 210
			g.Expect(k8sClient.Update(ctx, tree)).To(Succeed())
		}, timeout, interval).Should(Succeed())
		Eventually(func(g Gomega) {
			label := &corev1.ConfigMap{}
			g.Expect(k8sClient.Get(ctx, labelKey, label)).To(Succeed())
			g.Expect(label.Data).To(HaveKeyWithValue("height", "210 cm"))
		}, timeout, interval).Should(Succeed())
	})

	It("restores a label that another client has overwritten", func() {
		label := &corev1.ConfigMap{}
		Expect(k8sClient.Get(ctx, labelKey, label)).To(Succeed())
		label.Data = map[string]string{"variety": "Bramley"}
		Expect(k8sClient.Update(ctx, label)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, labelKey, label)).To(Succeed())
			g.Expect(label.Data).To(HaveKeyWithValue("variety", "Cox's Orange Pippin"))
		}, timeout, interval).Should(Succeed())
	})

	It("refuses what the schema does", func() {
		err := k8sClient.Create(ctx, &orchardv1.Tree{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bonsai"},
			Spec:       orchardv1.TreeSpec{Variety: "Juniper", Form: "Bonsai"},
		})
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`spec.form: Unsupported value: "Bonsai": supported values: "Cordon", "Fan", "Standard"`)))
	})

	It("leaves a stump", func() {
		tree := &orchardv1.Tree{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		Expect(k8sClient.Delete(ctx, tree)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(k8sClient.Get(ctx, key, tree))
		}, timeout, interval).Should(BeTrue())
		stump := &corev1.ConfigMap{}
		Expect(k8sClient.Get(ctx, types.NamespacedName{Namespace: "default", Name: "pippin-stump"}, stump)).To(Succeed())
		Expect(stump.Data).To(HaveKeyWithValue("variety", "Cox's Orange Pippin"))
	})
})
