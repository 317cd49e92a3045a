package utilization

import "sluice.dev/sluice/internal/lab/history"

// Formats lists both.
func Formats() []history.Format {
	return []history.Format{
		{
			Name: "nvidia-smi", Beside: true, Read: readTable, Is: isTable,
			Doc: "how busy GPUs were, by nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used --format=csv -l 10, a file " +
				"for each node, called after it",
		},
		{
			Name: "dcgmi dmon", Beside: true, Read: readColumns, Is: isColumns,
			Doc: "how busy GPUs were, by dcgmi dmon -e 203,1001,252 -d 10000 with the time before each line (ts), a file for each node, " +
				"called after it",
		},
	}
}
