// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// DefaultModelMountPath is the default of spec.model.mountPath.
	DefaultModelMountPath = "/models"
	// DefaultModelSizeLimit is the default of spec.model.sizeLimit.
	DefaultModelSizeLimit = "20Gi"
)

// Model is the model that the pods of a ModelBox serve. It is complete and verified before a
// container starts, other than the one that fetches it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.uri) || !self.uri.startsWith('http://') || (has(self.sha256) && self.sha256.size() > 0)",message="must be set for http://, because nothing else protects what is fetched; set it, or use https://",fieldPath=".sha256"
// +kubebuilder:validation:XValidation:rule="!has(self.uri) || !self.uri.startsWith('oci://') || self.uri.matches('@sha256:[0-9a-f]{64}$')",message="oci:// needs the digest of the image, such as oci://registry.example.com/team/model@sha256:...",fieldPath=".uri"
type Model struct {
	// uri is where the model comes from:
	//
	// - https://host/path, or http://host/path with sha256: a file, or an archive, which is
	// unpacked if its name ends in .zip, .tar, .tar.gz, .tgz, .tar.bz2 or .tar.zst;
	//
	// - s3://bucket/key: the same in a bucket. s3://bucket/folder/: all objects below it;
	//
	// - hf://org/name@commit: the files of a commit of a model hub, each verified by the hash
	// that the hub publishes. A path may follow, of a directory or a file;
	//
	// - oci://image@digest: an image, which the kubelet mounts as a volume. Needs Kubernetes
	// 1.35 or later;
	//
	// - pvc://claim/path: a directory in a PersistentVolumeClaim of the namespace.
	//
	// Required, unless spec.modelFileURL is set. At most 2048 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^((https|http|s3|hf|oci|pvc)://.*)?$`
	URI string `json:"uri,omitempty"`

	// sha256 is the SHA-256 of what is fetched, as 64 hexadecimal digits: of the file or of the
	// archive, as sha256sum prints it. It is verified before the model is visible to any other
	// container. Required for http://, and if claim is set for https:// and s3:// as well. May
	// not be set for hf://, oci:// and pvc://.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^([0-9a-fA-F]{64})?$`
	SHA256 string `json:"sha256,omitempty"`

	// mountPath is where the main container sees the model, read-only: a directory with the
	// content of the archive, or with the files. An absolute path, of at most 1024 characters.
	// Defaults to /models.
	//
	// +optional
	// +default="/models"
	// +kubebuilder:default="/models"
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || (self.startsWith('/') && self.matches('^(/[^/:]+)+$') && !self.matches('/[.][.]?(/|$)'))",message="must be an absolute path such as /models, without a colon, an empty segment, \".\" and \"..\""
	MountPath string `json:"mountPath,omitempty"`

	// sizeLimit is how much of the volume the model may take while it is fetched: a file as it
	// is, and an archive together with its files. The fetch ends with an error where it would
	// need more, and the volume of a pod has this size. Must be greater than 0. Has no effect for
	// oci:// and pvc://, for which any other value than the default is refused. Defaults to 20Gi.
	//
	// +optional
	// +default="20Gi"
	// +kubebuilder:default="20Gi"
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`

	// credentials is the Secret in the namespace of the object whose keys become environment
	// variables of the container that fetches, and of no other: MODEL_TOKEN, or MODEL_USERNAME
	// and MODEL_PASSWORD, for https://; AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and
	// AWS_ENDPOINT_URL for s3://; HF_TOKEN and HF_ENDPOINT for hf://; HTTPS_PROXY for all of them.
	// May not be set for oci:// and pvc://; an image is pulled with spec.imagePullSecrets.
	//
	// +optional
	Credentials *corev1.LocalObjectReference `json:"credentials,omitempty"`

	// claim is the name of a PersistentVolumeClaim in the namespace of the object. The model is
	// fetched into it once, and all pods that need the same model find it there. Without it, each
	// pod fetches into a volume of its own. May not be set for oci:// and pvc://.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Claim string `json:"claim,omitempty"`

	// include are patterns for the files that are fetched, as those of "hf download": * stands for
	// any characters, / too, ? for one, [a-z] and [!a-z] for one of them, and onnx/ for everything
	// below. They are compared with the path of a file in the repository, or below the folder. A
	// pattern that no file matches is an error of the fetch. Only for hf:// and for a folder of
	// s3://. At most 16 items of 1 to 128 bytes. Defaults to all files.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Include []string `json:"include,omitempty"`

	// exclude are patterns for the files that are not fetched, of those that include selects. They
	// have the form, and the bounds, of include.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Exclude []string `json:"exclude,omitempty"`
}

// NamedModel is a model beside spec.model, such as an adapter, a tokenizer or a draft model.
type NamedModel struct {
	// name is the name of the model, unique in the list: 1 to 40 lower-case letters, digits and
	// single dashes. The volume of the pods is called model- and the name.
	//
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-[a-z0-9]+)*$`
	Name string `json:"name"`

	Model `json:",inline"`
}

// ModelURI returns where the model comes from: spec.model.uri or its alias spec.modelFileURL,
// "" if the ModelBox has no model.
func (s *ModelBoxSpec) ModelURI() string {
	if s.Model == nil {
		return s.ModelFileURL
	}
	return cmp.Or(s.Model.URI, s.ModelFileURL)
}
