// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxSchedules is the maximum number of schedules of an object.
const MaxSchedules = 32

// Schedule sets the number of replicas at each of its times.
type Schedule struct {
	// name is the name of the schedule, unique in the object: a DNS-1123 label of 1 to 63 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// schedule has the times in cron format: five fields (minute, hour, day of month, month, day of
	// week), or one of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly. A schedule
	// without any time is refused. At most 1024 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Schedule string `json:"schedule"`

	// timeZone is the IANA name of the time zone of schedule, such as Asia/Shanghai. Defaults to
	// Etc/UTC.
	//
	// +optional
	// +default="Etc/UTC"
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=255
	TimeZone string `json:"timeZone,omitempty"`

	// replicas is the number of replicas from each of these times on, 0 to 1073741823, until the next
	// time of any schedule, or until another client sets another number.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1073741823
	Replicas int32 `json:"replicas"`
}

// ScheduledReplicas is a scheduled time with its number of replicas.
type ScheduledReplicas struct {
	// name is the name of the schedule.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// time is the scheduled time.
	//
	// +required
	Time metav1.Time `json:"time"`

	// replicas is the number of replicas of the schedule at that time.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Replicas int32 `json:"replicas"`
}

// ScheduleStatus is the state of the schedules of an object.
type ScheduleStatus struct {
	ScheduledReplicas `json:",inline"`

	// pending is present while the number of replicas is being written to spec.replicas.
	//
	// +optional
	Pending *PendingReplicas `json:"pending,omitempty"`

	// next are the next scheduled times, the first one first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	Next []ScheduledReplicas `json:"next,omitempty"`
}

// PendingReplicas is the object before its number of replicas was written. It tells after a crash whether
// the number has been written.
type PendingReplicas struct {
	// generation is metadata.generation before the write.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Generation int64 `json:"generation"`

	// replicas is spec.replicas before the write.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Replicas int32 `json:"replicas"`
}

// The bounds of the times at which changes may happen, which are those of the schema.
const (
	MaxWindows   = 32
	MaxSkipDates = 64
)

// Windows are the times at which changes may happen. It is embedded in a spec.
type Windows struct {
	// windows is the list of the times at which changes may happen: the restarts of an Eru, the rollouts of
	// changed configuration of a kind with restartOnChange: Referenced, and with holdChanges: All each rollout.
	// One of the two must be set. Windows that
	// overlap, or follow each other without a gap, act as one. Empty: at any time. At most 32 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Windows []Window `json:"windows,omitempty"`

	// skipDates is the list of dates on which no window opens, such as 2026-12-24. They are dates in
	// the time zone of each window. A window that is open when the date begins stays open. May be set
	// only with windows. At most 64 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=10
	// +kubebuilder:validation:items:Pattern=`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`
	SkipDates []string `json:"skipDates,omitempty"`
}

// Window is a time at which changes may happen.
type Window struct {
	// schedule has the times at which the window opens, in cron format: five fields (minute, hour, day
	// of month, month, day of week), or one of @yearly, @annually, @monthly, @weekly, @daily, @midnight
	// and @hourly. A schedule without any time is refused. At most 1024 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Schedule string `json:"schedule"`

	// timeZone is the IANA name of the time zone of schedule, such as Asia/Shanghai. Defaults to
	// Etc/UTC.
	//
	// +optional
	// +default="Etc/UTC"
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=255
	TimeZone string `json:"timeZone,omitempty"`

	// duration is how long the window stays open, such as 4h or 1h30m: 1m to 168h (7 days), in hours,
	// minutes and seconds. It is elapsed time, whatever the clocks show.
	//
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$`
	// +kubebuilder:validation:XValidation:rule="self.size() > 0 && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be 1m to 168h"
	Duration metav1.Duration `json:"duration"`
}
