"""What all others use: types of the model, units, errors, files, limits, text of others; knows nothing of the rest."""
