"""Renders the frames of this subjob, in Blender: each under another name first, and then counted. Blender dies of SIGTERM at once, and
leaves no file of the frame that it was at: the next subjob begins with that."""

import json
import os

import bpy

begin, end, first = (int(os.environ[name]) for name in ("SLUICE_FROM", "SLUICE_TO", "FIRST"))
output, progress = os.environ["SLUICE_OUTPUT_DIR"], os.environ["SLUICE_PROGRESS_FILE"]
scene = bpy.context.scene
# Frames that are there are not skipped: one that is broken, or of no bytes, would be skipped as well.
scene.render.use_overwrite = True
scene.render.use_placeholder = False
scene.render.use_file_extension = True

for unit in range(begin, end):
    frame = first + unit
    scene.frame_set(frame)
    new = os.path.join(output, ".new-%06d" % frame)
    scene.render.filepath = new
    bpy.ops.render.render(write_still=True)
    made = new + scene.render.file_extension
    if not os.path.getsize(made):
        raise RuntimeError("frame %d has no bytes: is the disk full?" % frame)
    os.replace(made, os.path.join(output, "frame-%06d%s" % (frame, scene.render.file_extension)))
    with open(progress + ".new", "w") as f:
        json.dump({"progress": unit + 1}, f)
    os.replace(progress + ".new", progress)
