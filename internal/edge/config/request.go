package config

import (
	"sluice.dev/sluice/internal/edge/strict"
)

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

// maxAsked is how long a job file may be that is asked about, in letters.
const maxAsked = 256 << 10

// requestFile is everything a Request may say. It is made by programs; no file is read as one.
func requestFile() strict.Form {
	return strict.AnObject(
		strict.Field{Key: "apiVersion", Need: true, Form: strict.AChoice(APIVersion), Example: APIVersion,
			Doc: "The version of this form."},
		strict.Field{Key: "kind", Need: true, Form: strict.AChoice(RequestKind), Example: RequestKind, Doc: "What the file describes."},
		strict.Field{Key: "metadata", Need: true, Form: strict.AnObject(
			strict.Field{Key: "name", Need: true, Form: strict.Form{Kind: strict.IsName}, Example: "ask-x7k2p", Doc: "Any name."},
		), Example: "{name: ask-x7k2p}", Doc: "What the request is called."},
		strict.Field{Key: "spec", Need: true, Form: strict.AnObject(
			strict.Field{Key: "ask", Need: true, Form: strict.AChoice(AskExplain, AskJob, AskDryRun, AskUpload), Example: AskExplain,
				Doc: "What for: why a job waits, all that is known of a job, what would become of a job that is not submitted, or a " +
					"place to upload a packed work directory to."},
			strict.Field{Key: "job", Form: strict.Form{Kind: strict.IsName}, Unset: "none", Example: "train",
				Doc: "The job of this namespace that it is about."},
			strict.Field{Key: "file", Form: strict.AText("a job file"), Unset: "none", Example: "|", Doc: "Of a dry run: the job's file."},
			strict.Field{Key: "operator", Form: strict.AText("the name of an operator"), Unset: "the first that sees it", Example: "sluice",
				Doc: "The operator that is asked, where there are several: the one that has the job."},
			strict.Field{Key: "digest", Form: strict.AText("the SHA-256 of the packed directory, in hex"), Unset: "none",
				Example: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", Doc: "Of an upload: what its bytes have."},
			strict.Field{Key: "bytes", Form: strict.ANumber(1, MaxUpload, 0), Unset: "none", Example: "1048576",
				Doc: "Of an upload: how many bytes it has."},
			strict.Field{Key: "sent", Form: strict.Form{Kind: strict.IsBoolean}, Example: "true",
				Doc: "Of an upload: all of it was written to the URL of the status."},
		), Example: "{ask: Explain, job: train}", Doc: "Something that somebody in this namespace asks the operator."},
	)
}

// requestResource is a question to the operator as a custom resource.
func requestResource() *resource {
	text := func(doc string) map[string]any { return map[string]any{"type": "string", "description": doc} }
	return &resource{
		kind: RequestKind, plural: "requests", short: "srq",
		doc: "What somebody in this namespace asks the operator of Sluice: kubectl sluice makes it, and deletes it with the answer. " +
			"Whoever may make one may ask.", file: requestFile(),
		status: withConditions(map[string]any{"answer": text("The answer, as the API has it in JSON."),
			"operator": text("The operator that has answered. No other does."), "url": text("Where to PUT an upload; it expires.")}),
		own: map[string]map[string]any{"file": {"maxLength": maxAsked}, "digest": {"pattern": "^[0-9a-f]{64}$", "maxLength": 64}},
		rules: []any{rule("self.ask == '"+AskUpload+"' ? has(self.digest) && has(self.bytes) : self.ask == '"+AskDryRun+
			"' ? has(self.file) : has(self.job)", "an upload has digest and bytes, a dry run a file, all else is about a job")},
		columns: []any{
			column("Ask", "string", ".spec.ask", 0), column("Job", "string", ".spec.job", 0),
			column("Answered", "string", `.status.conditions[?(@.type=="Answered")].status`, 0),
			column("Age", "date", ".metadata.creationTimestamp", 0),
		},
	}
}
