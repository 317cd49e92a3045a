# The program of the soak's jobs. What it does it notes in a file that no part of Sluice knows. A unit's value is made of the job's life and the unit, a step's of the value
# of the step before, in 64 bits that overflow; a checkpoint is its step, its value and the job's life.
set -u
note() { echo "$EPOCHREALTIME $SLUICE_SUBJOB $1 $2" >> "$NOTES"; }
report() { echo "{\"progress\":$1,\"checkpoint\":$2}" > "$SLUICE_PROGRESS_FILE.new" && mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"; }
told=; trap 'told=1' TERM
at=$SLUICE_FROM state=$LIFE
note began "$at"
if [ "$KIND" = steps ] && [ "$at" -gt 0 ]; then
  read -r step state life < "$SLUICE_RESUME_DIR/state-$at" && [ "$step" = "$at" ] && [ "$life" = "$LIFE" ] || { note wrong "$at"; exit 3; }
fi
while [ "$at" -lt "$SLUICE_TO" ]; do
  sleep "$PACE"
  [ -z "$told" ] || break
  [ "$KIND" = steps ] || state=$LIFE
  state=$((state * 6364136223846793005 + at + 1442695040888963407))
  note did "$at"
  echo "$at $LIFE $SLUICE_SUBJOB $state" >> "$SLUICE_OUTPUT_DIR/units"
  at=$((at + 1))
  if [ "$KIND" = items ]; then
    report "$at" false
  elif [ $((at % 5)) = 0 ] || [ "$at" = "$SLUICE_TO" ]; then
    echo "$at $state $LIFE" > "$SLUICE_CHECKPOINT_DIR/state-$at"
    report "$at" true
  fi
done
note ended "$at"
[ "$at" -ge "$SLUICE_TO" ] || exit 85
