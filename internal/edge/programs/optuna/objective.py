"""What is optimised: yours instead. objective(trial) returns a value, as for Optuna itself."""

import time


def objective(trial):
    x = trial.suggest_float("x", -10, 10)
    y = trial.suggest_int("y", -10, 10)
    kind = trial.suggest_categorical("kind", ["a", "b"])
    time.sleep(0.5)  # stands for the work
    return (x - 2) ** 2 + (y + 3) ** 2 + (1 if kind == "a" else 0)
