"""Files that users and others can touch: read with care, and written so that nobody's link leads elsewhere."""

from testbed.files.digest import code_digest
from testbed.files.folder import open_folder
from testbed.files.read import read_bytes, read_text
from testbed.files.write import (
    create_file,
    make_folder,
    make_new_folder,
    remove_folder,
    rename,
    write_whole,
)

__all__ = [
    "code_digest",
    "create_file",
    "make_folder",
    "make_new_folder",
    "open_folder",
    "read_bytes",
    "read_text",
    "remove_folder",
    "rename",
    "write_whole",
]
