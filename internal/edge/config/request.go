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

// maxAsked is how long a job file may be that is asked about, in letters.
const maxAsked = 256 << 10

// requestFile is everything a Request may say. It is made by programs; no file is read as one.
func requestFile() form {
	return anObject(
		field{key: "apiVersion", need: true, form: aChoice(APIVersion), example: APIVersion, doc: "The version of this form."},
		field{key: "kind", need: true, form: aChoice(RequestKind), example: RequestKind, doc: "What the file describes."},
		field{key: "metadata", need: true, form: anObject(
			field{key: "name", need: true, form: form{kind: isName}, example: "ask-x7k2p", doc: "Any name."},
		), example: "{name: ask-x7k2p}", doc: "What the request is called."},
		field{key: "spec", need: true, form: anObject(
			field{key: "ask", need: true, form: aChoice(AskExplain, AskJob, AskDryRun, AskUpload), example: AskExplain, doc: "What for: why a job waits, all that is known of a job, what would become of a job that is not submitted, or a place to upload a packed work directory to."},
			field{key: "job", form: form{kind: isName}, unset: "none", example: "train", doc: "The job of this namespace that it is about."},
			field{key: "file", form: aText("a job file"), unset: "none", example: "|", doc: "Of a dry run: the job's file."},
			field{key: "operator", form: aText("the name of an operator"), unset: "the first that sees it", example: "sluice", doc: "The operator that is asked, where there are several: the one that has the job."},
			field{key: "digest", form: aText("the SHA-256 of the packed directory, in hex"), unset: "none", example: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", doc: "Of an upload: what its bytes have."},
			field{key: "bytes", form: aNumber(1, MaxUpload, 0), unset: "none", example: "1048576", doc: "Of an upload: how many bytes it has."},
			field{key: "sent", form: form{kind: isBoolean}, example: "true", doc: "Of an upload: all of it was written to the URL of the status."},
		), example: "{ask: Explain, job: train}", doc: "Something that somebody in this namespace asks the operator."},
	)
}

// requestResource is a question to the operator as a custom resource.
func requestResource() *resource {
	text := func(doc string) map[string]any { return map[string]any{"type": "string", "description": doc} }
	return &resource{
		kind: RequestKind, plural: "requests", short: "srq", doc: "What somebody in this namespace asks the operator of Sluice: kubectl sluice makes it, and deletes it with the answer. Whoever may make one may ask.", file: requestFile(),
		status: withConditions(map[string]any{"answer": text("The answer, as the API has it in JSON."), "operator": text("The operator that has answered. No other does."), "url": text("Where to PUT an upload; it expires.")}),
		own:    map[string]map[string]any{"file": {"maxLength": maxAsked}, "digest": {"pattern": "^[0-9a-f]{64}$", "maxLength": 64}},
		rules:  []any{rule("self.ask == '"+AskUpload+"' ? has(self.digest) && has(self.bytes) : self.ask == '"+AskDryRun+"' ? has(self.file) : has(self.job)", "an upload has digest and bytes, a dry run a file, all else is about a job")},
		columns: []any{
			column("Ask", "string", ".spec.ask", 0), column("Job", "string", ".spec.job", 0),
			column("Answered", "string", `.status.conditions[?(@.type=="Answered")].status`, 0), column("Age", "date", ".metadata.creationTimestamp", 0),
		},
	}
}
