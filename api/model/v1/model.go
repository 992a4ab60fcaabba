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
	// unpacked if its name ends in .zip, .tar, .tar.gz, .tgz or .tar.zst;
	//
	// - s3://bucket/key: the same in a bucket;
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
}

// ModelURI returns where the model comes from: spec.model.uri or its alias spec.modelFileURL,
// "" if the ModelBox has no model.
func (s *ModelBoxSpec) ModelURI() string {
	if s.Model == nil {
		return s.ModelFileURL
	}
	return cmp.Or(s.Model.URI, s.ModelFileURL)
}

// ModelOrDefault returns the model with its URI and its defaults, also where only
// spec.modelFileURL is set, and nil if the ModelBox has no model.
func (s *ModelBoxSpec) ModelOrDefault() *Model {
	if s.Model == nil && s.ModelFileURL == "" {
		return nil
	}
	var model Model
	if s.Model != nil {
		model = *s.Model
	}
	model.URI = s.ModelURI()
	model.MountPath = cmp.Or(model.MountPath, DefaultModelMountPath)
	if model.SizeLimit == nil {
		model.SizeLimit = new(resource.MustParse(DefaultModelSizeLimit))
	}
	return &model
}
