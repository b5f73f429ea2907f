"""Files that users and others can touch: read with care, and written so that nobody's link leads elsewhere."""

from testbed.base.files.digest import code_digest
from testbed.base.files.folder import open_folder
from testbed.base.files.read import read_bytes, read_text
from testbed.base.files.write import (
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
