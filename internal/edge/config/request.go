package config

// RequestKind is the kind of an object by which somebody in a namespace asks the operator of a cluster.
const RequestKind = "Request"

// What a Request asks for.
const (
	AskExplain = "Explain"
	AskJob     = "Job"
	AskDryRun  = "DryRun"
	AskUpload  = "Upload"
)

// MaxUpload is the largest work directory that is uploaded by a Request, packed, in bytes.
const MaxUpload = 64 << 20
