"""Inner loops compiled by numba: arrays and numbers in, arrays and numbers out; they know nothing of the model.

Importing a kernel imports numba, which takes 0.2 s, so the functions that need one import it themselves. Compiled
code is kept on disk: beside the source where that can be written, else in the user's cache folder.
"""
