"""The host's inference server, for one burst: it loads, waits until the burst begins, and answers requests one after another.

Requests come at random, whether or not those before were answered, so that latency has the wait in it; they come from within the
process. Arguments: when the burst begins (Unix time), how long it lasts, requests a second. It prints a line of JSON at its end.
"""

import json
import random
import sys
import time

begins, lasts, rate = float(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])

import device  # noqa: E402
import work  # noqa: E402

started = time.time()
gpu = device.open_device()
memory = gpu.take(256 << 20)  # what stands for its model
net = work.net(gpu)
for i in range(20):
    net.answer(i)
gpu.sync()
ready = time.time()

draw = random.Random(3)
latencies = []
arrival = begins
while True:
    arrival += draw.expovariate(rate)
    if arrival > begins + lasts:
        break
    time.sleep(max(0.0, arrival - time.time()))
    net.answer(len(latencies))
    gpu.sync()
    latencies.append(time.time() - arrival)
print(json.dumps({"loading": ready - started, "late": max(0.0, ready - begins), "latencies": latencies}))
