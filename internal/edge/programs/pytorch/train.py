"""A small network with dropout, trained on points that are made here: yours instead. STEPS is the job's total."""

import os

import torch

import sluice_torch

torch.manual_seed(1)
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

made = torch.Generator().manual_seed(2)
x = torch.randn(4096, 32, generator=made)
y = (x[:, :8].sum(1) > 0).float().unsqueeze(1)

width = int(os.environ.get("WIDTH", "256"))
model = torch.nn.Sequential(
    torch.nn.Linear(32, width), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(width, width), torch.nn.ReLU(),
    torch.nn.Linear(width, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
batches = sluice_torch.Batches(len(x), size=64, seed=3)
ckpt = sluice_torch.Checkpointer(total=int(os.environ["STEPS"]), every=500, model=model, optimizer=optimizer, batches=batches)

data = torch.utils.data.TensorDataset(x, y)
# A generator of its own: a loader draws from the common one each time that it is begun, so more often where it was cut.
loader = torch.utils.data.DataLoader(data, batch_sampler=batches, generator=torch.Generator())
for inputs, labels in ckpt.loop(loader):
    optimizer.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(inputs), labels)
    loss.backward()
    optimizer.step()

if ckpt.step == ckpt.total:
    print("loss %.6f" % loss.item() if ckpt.step else "nothing to train", flush=True)
    torch.save(model.state_dict(), ckpt.output("model.pt"))
