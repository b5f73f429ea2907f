"""What people use: the command line, the library, the live page, exercises, plug-ins of pytest."""
