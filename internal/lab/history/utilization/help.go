package utilization

// Help says how to write down how busy GPUs are: text for a terminal.
func Help() string {
	return `How to measure how busy the GPUs are, beside any of these logs, or alone on a machine without a
scheduler: what jobs hold and do not use is then told apart from what nobody holds. Let one of these
run for some weeks on each node, and give all the files:

  nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,memory.used,mig.mode.current --format=csv -l 10 > $(hostname).csv
  dcgmi dmon -e 203,1001,252 -d 10000 | ts '%Y-%m-%dT%H:%M:%S%z' > $(hostname).log

   A node is matched by its name, short or full, which is the file's. nvidia-smi prints local time
   without a zone (--zone says which), and no utilization of GPUs that have MIG; dcgmi dmon prints no
   time at all, so ts (moreutils) puts it there. Of Kubernetes the dump above has DCGM's metrics.
`
}
