"""A virtual machine with Debian's kernel that a lab can be run in: its image, the project on a disk, QEMU."""
