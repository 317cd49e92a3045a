module sluice.dev/sluice/tools/image

go 1.26.0
